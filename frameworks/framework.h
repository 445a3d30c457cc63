/** Training frameworks: which stack they are, which layouts they can run, and by which of their own rules not. */
#ifndef ND_FRAMEWORKS_FRAMEWORK_H
#define ND_FRAMEWORKS_FRAMEWORK_H

#include <stdbool.h>
#include <stdint.h>

#include "core/layout.h"
#include "core/train_spec.h"
#include "models/model_spec.h"

ND_BEGIN_DECLS

/** Why a layout is refused. */
typedef struct nd_refusal {
    const char *rule;  /* stable id, "accelerate.no-pp"; static storage */
    char message[256]; /* with the numbers */
    char nearest[96];  /* nearest legal values ("pp=1"), or empty */
} nd_refusal;

typedef struct nd_framework {
    const char *name;    /* "accelerate" */
    const char *title;   /* "Hugging Face Accelerate" */
    const char *version; /* version whose rules these are */
    const char *stack;   /* name of the stack in cost_model/stacks */
    const char *source;
    /** True when the framework can run it; otherwise `refusal` (may be NULL) says why not.
     * Pure and cheap: called for every layout of a search. When `refusal` is NULL nothing is formatted.
     * `rule` (may be NULL) receives the rule id either way (static storage). */
    bool (*allows)(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train, const char **rule,
                   nd_refusal *refusal);
} nd_framework;

/** By name, optionally with "@version" (only the known version is accepted; the message lists it). */
nd_status nd_framework_find(const char *name, const nd_framework **out, nd_error *err) ND_NODISCARD;

size_t nd_framework_count(void);
const nd_framework *nd_framework_at(size_t index);

ND_END_DECLS

#endif
