/* Both ends of the model: tokens and embedding; final norm, head and loss. */
#include "program/builder_internal.h"

nd_seq_map nd_region_map(const nd_builder *b)
{
    int64_t seq_len = b->program->train.seq_len_tokens;
    return (nd_seq_map){.seq_len = seq_len,
                        .cp = b->cp,
                        .member = b->coords[ND_AXIS_CP],
                        .zigzag = b->cp > 1 && b->layout.cp_method != ND_CP_METHOD_ULYSSES,
                        .positions = seq_len / b->cp};
}

nd_seq_map nd_stream_map(const nd_builder *b)
{
    nd_seq_map map = nd_region_map(b);
    if (b->sp) {
        map.positions /= b->tp;
        map.first = b->coords[ND_AXIS_TP] * map.positions;
    }
    return map;
}

int32_t nd_build_load(nd_builder *b, bool labels)
{
    int32_t out = nd_buffer_new(b, b->region_rows, ND_ELEM_I32, ND_MEMORY_WORKSPACE, labels ? "labels" : "tokens");
    nd_ref none = nd_whole(0);
    nd_emit(b, &(nd_ins){.op = ND_INS_LOAD,
                         .out = {labels ? none : nd_whole(out), labels ? nd_whole(out) : none},
                         .rows = b->region_rows,
                         .cols = 1,
                         .micro_batch = b->micro_batch,
                         .q_map = nd_region_map(b),
                         .tag = labels ? "labels" : "tokens"});
    return out;
}

static int64_t vocab_rows(const nd_builder *b)
{
    return (b->model->vocab + b->tp - 1) / b->tp;
}

static nd_ins lookup(const nd_builder *b, nd_ins_op op)
{
    return (nd_ins){.op = op,
                    .rows = b->region_rows,
                    .cols = b->model->hidden,
                    .vocab = b->model->vocab,
                    .vocab_rows = vocab_rows(b),
                    .vocab_first = b->coords[ND_AXIS_TP] * vocab_rows(b),
                    .tag = "embedding"};
}

/* Learned positions of the rows of the stream. */
static int32_t stream_positions(nd_builder *b)
{
    int32_t out = nd_buffer_new(b, b->stream_rows, ND_ELEM_I32, ND_MEMORY_WORKSPACE, "positions");
    nd_emit(b, &(nd_ins){.op = ND_INS_POSITIONS,
                         .out = {nd_whole(out)},
                         .rows = b->stream_rows,
                         .cols = 1,
                         .micro_batch = b->micro_batch,
                         .q_map = nd_stream_map(b),
                         .tag = "positions"});
    return out;
}

static nd_ins position_lookup(const nd_builder *b, nd_ins_op op)
{
    return (nd_ins){.op = op,
                    .rows = b->stream_rows,
                    .cols = b->model->hidden,
                    .vocab = b->model->learned_positions,
                    .vocab_rows = b->model->learned_positions,
                    .tag = "position embedding"};
}

int32_t nd_build_embedding(nd_builder *b)
{
    int32_t unit = nd_unit_find(b, ND_UNIT_EMBED, -1);
    nd_unit_open(b, unit);
    int32_t tokens = nd_build_load(b, false);
    int32_t x = nd_buffer_new(b, b->region_rows * b->model->hidden, b->real, ND_MEMORY_ACTIVATIONS, "embedding");
    nd_ins ins = lookup(b, ND_INS_EMBED);
    ins.in[0] = nd_whole(tokens);
    ins.in[1] = nd_weight(b, unit, ND_ROLE_EMBED);
    ins.out[0] = nd_whole(x);
    nd_emit(b, &ins);
    nd_release(b, &tokens);
    nd_region_leave(b, &x, "leave embedding");
    if (nd_unit_has(b, unit, ND_ROLE_POSITIONS)) {
        int64_t elements = b->stream_rows * b->model->hidden;
        int32_t positions = stream_positions(b);
        int32_t added = nd_buffer_new(b, elements, b->real, ND_MEMORY_WORKSPACE, "position embedding");
        nd_ins table = position_lookup(b, ND_INS_EMBED);
        table.in[0] = nd_whole(positions);
        table.in[1] = nd_weight(b, unit, ND_ROLE_POSITIONS);
        table.out[0] = nd_whole(added);
        nd_emit(b, &table);
        nd_emit_add(b, nd_whole(x), nd_whole(added), nd_whole(x), elements, "add positions");
        nd_release(b, &added);
        nd_release(b, &positions);
    }
    nd_unit_close(b, unit);
    return x;
}

void nd_build_embedding_back(nd_builder *b, int32_t dx)
{
    int32_t unit = nd_unit_find(b, ND_UNIT_EMBED, -1);
    if (nd_unit_has(b, unit, ND_ROLE_POSITIONS)) {
        int32_t positions = stream_positions(b);
        nd_ins table = position_lookup(b, ND_INS_EMBED_GRAD);
        table.in[0] = nd_whole(positions);
        table.in[1] = nd_whole(dx);
        table.out[0] = nd_weight_grad(b, unit, ND_ROLE_POSITIONS);
        nd_emit(b, &table);
        nd_release(b, &positions);
    }
    int32_t inner = nd_region_enter_back(b, dx, "leave embedding");
    int32_t tokens = nd_build_load(b, false);
    nd_ins ins = lookup(b, ND_INS_EMBED_GRAD);
    ins.in[0] = nd_whole(tokens);
    ins.in[1] = nd_whole(inner);
    ins.out[0] = nd_weight_grad(b, unit, ND_ROLE_EMBED);
    nd_emit(b, &ins);
    nd_release(b, &tokens);
    nd_release(b, &inner);
    nd_release(b, &dx);
}

/* The matrix of the head: its own, or the embedding. */
static nd_matrix_of head_of(const nd_builder *b)
{
    bool tied = b->model->tied_embeddings;
    return (nd_matrix_of){.unit = nd_unit_find(b, tied ? ND_UNIT_EMBED : ND_UNIT_HEAD, -1),
                          .role = tied ? ND_ROLE_EMBED : ND_ROLE_HEAD,
                          .n = vocab_rows(b),
                          .k = b->model->hidden,
                          .tag = "head"};
}

static nd_norm_of final_norm(const nd_builder *b)
{
    return (nd_norm_of){.unit = nd_unit_find(b, ND_UNIT_HEAD, -1),
                        .role = ND_ROLE_FINAL_NORM,
                        .bias = ND_ROLE_FINAL_NORM_BIAS,
                        .rows = b->stream_rows,
                        .cols = b->model->hidden,
                        .tag = "final norm"};
}

static void open_head(nd_builder *b, bool open)
{
    int32_t units[2] = {nd_unit_find(b, ND_UNIT_HEAD, -1), head_of(b).unit};
    for (int i = 0; i < (units[0] == units[1] ? 1 : 2); i++) {
        if (open) {
            nd_unit_open(b, units[i]);
        } else {
            nd_unit_close(b, units[i]);
        }
    }
}

static void sum_over_vocab(nd_builder *b, int32_t buffer, int64_t elements, bool max)
{
    if (b->tp > 1) {
        nd_emit(b, &(nd_ins){.op = ND_INS_ALL_REDUCE,
                             .in = {nd_whole(buffer)},
                             .out = {nd_whole(buffer)},
                             .rows = elements,
                             .cols = 1,
                             .max = max,
                             .group = ND_MEMBERS_TP,
                             .tag = max ? "loss: maximum" : "loss: sums"});
    }
}

/* Cross-entropy over logits that are divided by vocabulary; *logits become their gradient. */
static void loss(nd_builder *b, int32_t logits, int32_t count)
{
    int64_t rows = b->region_rows;
    int32_t labels = nd_build_load(b, true);
    int32_t max = nd_buffer_new(b, rows, b->wide, ND_MEMORY_WORKSPACE, "largest logits");
    int32_t sums = nd_buffer_new(b, 2 * rows, b->wide, ND_MEMORY_WORKSPACE, "sums of exp(logit)");
    nd_ins ins = lookup(b, ND_INS_LOSS_MAX);
    ins.cols = ins.vocab_rows;
    ins.tag = "loss";
    ins.in[0] = nd_whole(logits);
    ins.out[0] = nd_whole(max);
    nd_emit(b, &ins);
    sum_over_vocab(b, max, rows, true);
    ins.op = ND_INS_LOSS_SUM;
    ins.in[1] = nd_whole(max);
    ins.in[2] = nd_whole(labels);
    ins.out[0] = nd_whole(sums);
    nd_emit(b, &ins);
    sum_over_vocab(b, sums, 2 * rows, false);
    ins.op = ND_INS_LOSS;
    ins.in[2] = nd_whole(sums);
    ins.in[3] = nd_whole(labels);
    ins.in[4] = nd_whole(count);
    ins.out[0] = nd_whole(logits);
    ins.out[1] = nd_whole(b->program->loss);
    ins.loss_weight = b->coords[ND_AXIS_TP] == 0 ? 1.0 : 0.0; /* every tp rank has it, one counts */
    nd_emit(b, &ins);
    nd_release(b, &labels);
    nd_release(b, &max);
    nd_release(b, &sums);
}

void nd_build_head(nd_builder *b, int32_t x, int32_t count, nd_kept_head *kept)
{
    nd_norm_of norm = final_norm(b);
    nd_matrix_of head = head_of(b);
    open_head(b, true);
    *kept = (nd_kept_head){.x = x};
    kept->norm = nd_norm(b, x, &norm, &kept->stats);
    int32_t inner = nd_region_enter(b, kept->norm, "enter head");
    kept->dlogits = nd_buffer_new(b, b->region_rows * vocab_rows(b), b->real, ND_MEMORY_LOGITS, "logits");
    nd_linear_into(b, inner, b->region_rows, &head, nd_whole(kept->dlogits));
    nd_release(b, &inner);
    loss(b, kept->dlogits, count);
    open_head(b, false);
}

int32_t nd_build_head_back(nd_builder *b, nd_kept_head *kept)
{
    nd_norm_of norm = final_norm(b);
    nd_matrix_of head = head_of(b);
    open_head(b, true);
    int32_t inner = nd_region_enter(b, kept->norm, "enter head");
    int32_t dnorm = 0;
    nd_linear_grad_input(b, nd_whole(kept->dlogits), b->region_rows, &head, &dnorm);
    nd_linear_grad_weight(b, nd_whole(kept->dlogits), inner, b->region_rows, &head);
    nd_release(b, &inner);
    nd_release(b, &kept->dlogits);
    nd_release(b, &kept->norm);
    nd_region_leave_back(b, &dnorm, "enter head");
    int32_t dx = 0;
    nd_norm_grad(b, kept->x, kept->stats, nd_whole(dnorm), &norm, &dx);
    nd_release(b, &dnorm);
    nd_release(b, &kept->x);
    nd_release(b, &kept->stats);
    open_head(b, false);
    return dx;
}
