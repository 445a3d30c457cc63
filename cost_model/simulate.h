/** One step of a pipeline pass by pass, instead of in closed form. docs/MODEL.md, "Simulated step".
 *
 * Every stage runs its passes in the order of its schedule (program/schedule.h); a pass starts when its stage is
 * free and its input has arrived. A transfer occupies its link, one each way between neighbours, and where the stack
 * does not overlap transfers its sender too. Gathers and reductions of data parallelism lengthen the passes that wait
 * for them; host launches, contention and offloading lengthen all passes of a stage as in the closed form. All stages
 * update their weights when the last has its gradients (the gradient norm needs them all); host time and stragglers
 * follow as in the closed form.
 *
 * What differs from the closed form: unequal stages, transfers that wait for each other or hide, fewer micro-batches
 * than stages, traffic and launches of other stages than the busiest. */
#ifndef ND_COST_MODEL_SIMULATE_H
#define ND_COST_MODEL_SIMULATE_H

#include "cost_model/estimate.h"

ND_BEGIN_DECLS

/* X(enumerator, text) */
#define ND_EVENT_LIST(X)                                                                                               \
    X(ND_EVENT_FORWARD, "forward")                                                                                     \
    X(ND_EVENT_BACKWARD, "backward")               /* of the inputs alone under zero_bubble */                         \
    X(ND_EVENT_WEIGHT_GRADIENT, "weight gradient") /* zero_bubble only */                                              \
    X(ND_EVENT_SEND_FORWARD, "send activations")                                                                       \
    X(ND_EVENT_SEND_BACKWARD, "send gradients")                                                                        \
    X(ND_EVENT_GATHER, "gather weights")                                                                               \
    X(ND_EVENT_REDUCE, "reduce gradients")                                                                             \
    X(ND_EVENT_OPTIMIZER, "optimizer")                                                                                 \
    X(ND_EVENT_REST, "host and stragglers")

#define ND_EVENT_ENTRY(name, text) name,
typedef enum nd_event_kind { ND_EVENT_LIST(ND_EVENT_ENTRY) ND_EVENT_COUNT } nd_event_kind;
#undef ND_EVENT_ENTRY

const char *nd_event_name(nd_event_kind kind); /* "forward", ...; never NULL */

typedef struct nd_timeline_event {
    nd_event_kind kind;
    int32_t stage;       /* of sends the sender's */
    int32_t chunk;       /* of the model, from 0; -1 for what belongs to the whole stage */
    int64_t micro_batch; /* from 0, or -1 */
    double start_s, end_s;
} nd_timeline_event;

/** Receives every event, those of one stage and kind in order of time; `event` is valid during the call. */
typedef void (*nd_timeline_sink)(const nd_timeline_event *event, void *user);

typedef struct nd_simulation {
    double step_s;
    double passes_s; /* until the last stage has its gradients */
    int32_t stages;
    int32_t busiest_stage; /* the one with the least bubble, the first of those */
    int64_t events;
    double bubble_s[ND_MODEL_LAYERS_MAX]; /* of passes_s, what each stage neither computes nor is kept by traffic */
} nd_simulation;

enum { ND_SIMULATED_PASSES_MAX = 4000000 }; /* about a second and 64 MB */

/** Simulate one step.
 *
 * \param[in]  layout passed nd_layout_allowed()
 * \param[in]  prices of nd_price_blocks() for it
 * \param[in]  sink   may be NULL
 * \param[out] out    untouched on failure
 * \return ND_EUNSUPPORTED with the reason for more than ND_SIMULATED_PASSES_MAX passes (all stages, chunks and
 *         micro-batches; the sink was not called), ND_ENOMEM. */
nd_status nd_simulate_step(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices,
                           nd_timeline_sink sink, void *user, nd_simulation *out, nd_error *err) ND_NODISCARD;

/** Whether estimates of this context take the layout's step time from a simulation: it has a pipeline, and not more
 * passes than take a few milliseconds. */
bool nd_is_simulated(const nd_cost_context *context, const nd_layout *layout);

/** Make `step_s` the step time. What the closed form had more or less goes to the bubble, then to the transfers of the
 * pipeline, then to the rest, none of which gets negative; the interval keeps its ratios. */
void nd_time_retime(double step_s, nd_time_breakdown *time);

/** Seconds of the simulated step; of the closed form where there are too many passes to simulate. */
double nd_simulated_step_s(const nd_cost_context *context, const nd_layout *layout, const nd_block_prices *prices);

ND_END_DECLS

#endif
