/** What is built in: `ndplan list models|gpus|clusters|frameworks|stacks`. */
#ifndef ND_REPORTS_LIST_REPORT_H
#define ND_REPORTS_LIST_REPORT_H

#include "reports/table.h"

ND_BEGIN_DECLS

/* X(enumerator, text) */
#define ND_LIST_KIND_LIST(X)                                                                                           \
    X(ND_LIST_MODELS, "models")                                                                                        \
    X(ND_LIST_GPUS, "gpus")                                                                                            \
    X(ND_LIST_CLUSTERS, "clusters")                                                                                    \
    X(ND_LIST_FRAMEWORKS, "frameworks")                                                                                \
    X(ND_LIST_STACKS, "stacks")

typedef enum nd_list_kind {
#define ND_LIST_ENUM(name, text) name,
    ND_LIST_KIND_LIST(ND_LIST_ENUM)
#undef ND_LIST_ENUM
        ND_LIST_KIND_COUNT
} nd_list_kind;

typedef enum nd_report_format { ND_REPORT_TEXT, ND_REPORT_JSON, ND_REPORT_CSV } nd_report_format;

const char *nd_list_kind_name(nd_list_kind kind);

/** Print every built-in of `kind`. JSON: {"schema":"ndplan/list/1","kind":...,"items":[...]}, base units. */
nd_status nd_report_list(FILE *stream, nd_list_kind kind, nd_report_format format, const nd_report_style *style,
                         nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
