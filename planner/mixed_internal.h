/** Pieces of the search over mixed clusters. Private to planner/mixed*.c. */
#ifndef ND_PLANNER_MIXED_INTERNAL_H
#define ND_PLANNER_MIXED_INTERNAL_H

#include "planner/mixed.h"

ND_BEGIN_DECLS

enum { ND_MIXED_ORDERS_MAX = 60 }; /* of 2, 3 and 4 out of 4 parts: 12 + 24 + 24 */

/** Seconds of one micro-batch, forward and backward, on each part. */
typedef struct nd_mixed_work {
    double layer_s[ND_MIXED_PARTS_MAX][ND_LAYER_KINDS_MAX];
    double all_layers_s[ND_MIXED_PARTS_MAX];
    double least_layers_s[ND_MIXED_PARTS_MAX]; /* for bounds: were every layer kind as fast as the one it is best at */
    double embedding_s[ND_MIXED_PARTS_MAX], head_s[ND_MIXED_PARTS_MAX];
} nd_mixed_work;

/** A pipeline over some parts in some order. */
typedef struct nd_mixed_line {
    int32_t groups;
    int32_t part[ND_MIXED_PARTS_MAX];
    int32_t stages[ND_MIXED_PARTS_MAX]; /* of each group */
    int32_t total;                      /* stages */
    int32_t part_of[ND_MIXED_STAGES_MAX];
} nd_mixed_line;

/** A part of the search: from where to where it takes the progress of the whole. */
typedef struct nd_mixed_share {
    const nd_search_control *control;
    double from_frac, to_frac;
    bool stopped;
} nd_mixed_share;

/** Tell the control that `done_frac` of the share is done (as nd_search_control.progress: `data` is the
 * nd_mixed_share). \return false when the control says stop, now or before */
bool nd_mixed_share_goes_on(void *data, double done_frac);

/** Why a way has no plan that was not searched to its end. */
extern const char nd_mixed_interrupted[];

/** What a candidate needs beside itself; made once for a search. */
typedef struct nd_mixed_scene {
    const nd_mixed_input *input;
    nd_cluster_spec between[ND_MIXED_PARTS_MAX][ND_MIXED_PARTS_MAX];
} nd_mixed_scene;

/** mixed_slowest.c: constants of a cluster whose GPUs are each the slowest in every class of kernels. `cluster` is
 * nd_mixed_cluster_slowest()'s; its SM count is set to that of the GPU whose GEMMs are slowest.
 * \param[out] train        the training with the attention kernel of the GPU that is slowest in it
 * \param[out] uncertainty  of the GPU whose GEMMs are slowest */
void nd_mixed_slowest_constants(const nd_mixed_input *input, nd_cluster_spec *cluster, nd_calibration *calibration,
                                nd_train_spec *train, nd_time_uncertainty *uncertainty);

/** mixed_split.c: seconds of each layer kind and of the ends on every part.
 * \param[in] prices  of each part, for `layout` */
nd_mixed_work nd_mixed_work_of(const nd_mixed_input *input, const nd_layout *layout, const nd_block_prices *prices);

/** Fill all_layers_s and least_layers_s from layer_s. */
void nd_mixed_work_finish(const nd_model_spec *model, int32_t parts, nd_mixed_work *work);

/** Fill line->total and part_of from groups, part and stages. */
void nd_mixed_line_finish(nd_mixed_line *line);

/** The least that a step of `micro_batches` can take on this line, whatever the division of layers: with T the time of
 * the slowest stage it takes (micro_batches - 1) T and the sum of all stages, and of each T that sum is least when the
 * fastest kinds are full. Both are linear in between, so the least is where the k fastest kinds share all layers. Where
 * kinds of GPU differ in which layers suit them, each is taken at its best. */
double nd_mixed_least_s(const nd_mixed_work *work, const nd_mixed_line *line, double micro_batches);

/** Layers of each stage, contiguous, at least one each, so that the slowest stage is as fast as possible; among those
 * with more layers on the faster kinds.
 * \param[in] most    no stage takes more layers than this; NULL: no limit
 * \param[in] pace_s  no stage may take longer
 * \return false when the limits leave no division */
bool nd_mixed_divide(const nd_model_spec *model, const nd_mixed_work *work, const nd_mixed_line *line,
                     const int32_t *most, double pace_s, int32_t layers[ND_MIXED_STAGES_MAX]);

/** How many layers stages can hold at most. Models with several kinds of layers are counted in their heaviest. */
typedef struct nd_mixed_room {
    int32_t layers[ND_MIXED_PARTS_MAX]; /* of each part, were micro-batches fewest and without embedding and head */
    /* exactly, of a stage without embedding and head that has so many micro-batches in flight; -1: not looked at */
    int32_t inner[ND_MIXED_PARTS_MAX][ND_MIXED_STAGES_MAX + 1];
} nd_mixed_room;

/** mixed_stages.c: the room of every pipeline of this layout, whatever its line; `inner` is filled when asked for. */
void nd_mixed_room_of(const nd_mixed_input *input, const nd_layout *layout, const nd_block_prices *prices,
                      nd_mixed_room *out);

/** What stragglers of all nodes in use make of a step without any, >= 1.
 * \param[in] grid  ranks of one stage */
double nd_mixed_straggling(const nd_mixed_input *input, const nd_mixed_line *line, int64_t grid);

/** Divide the layers over `line`, check every stage's memory against its own GPU, price the step.
 *
 * \param[in,out] room  of nd_mixed_room_of()
 * \param[in]  limit_s  give up when the step surely takes longer
 * \param[out] unfit    true when memory was the reason to refuse
 * \param[out] out      untouched when false is returned */
bool nd_mixed_price_line(const nd_mixed_scene *scene, const nd_layout *layout, const nd_block_prices *prices,
                         const nd_mixed_work *work, nd_mixed_room *room, const nd_mixed_line *line, double limit_s,
                         bool *unfit, nd_mixed_option *out);

/** mixed_pins.c: whether the pins and limits of `keys` (bit 1u << nd_layout_key) admit the layout. */
bool nd_mixed_admits(const nd_search_options *options, const nd_layout *layout, uint32_t keys);

/** mixed_space.c: the best pipeline of each order of parts, best order first.
 * \param[out] options  room for ND_MIXED_ORDERS_SHOWN
 * \param[in,out] share  says when to stop
 * \param[out] count  how many were written; 0: none fits, *why says why */
nd_status nd_mixed_search_stages(const nd_mixed_input *input, nd_mixed_share *share, nd_mixed_option *options,
                                 int32_t *count, nd_mixed_plan *counters, char *why, size_t why_bytes,
                                 nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
