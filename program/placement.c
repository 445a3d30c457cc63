#include "program/placement.h"

#include <stdlib.h>
#include <string.h>

/* A shard is a multiple of this many elements, so that its ends are aligned in every type. */
static const int64_t shard_multiple = 16;

nd_chunk_map nd_chunk_map_even(const nd_model_spec *model, const nd_layout *layout)
{
    nd_chunk_map map = {.chunks = layout->size[ND_AXIS_PP] * layout->vpp};
    int32_t layers = (int32_t)model->layers;
    int32_t extra = layers % map.chunks;
    int32_t first_extra = (map.chunks - extra) / 2; /* away from embedding and head */
    for (int32_t chunk = 0; chunk < map.chunks; chunk++) {
        bool more = chunk >= first_extra && chunk < first_extra + extra;
        map.first[chunk + 1] = map.first[chunk] + layers / map.chunks + more;
    }
    return map;
}

typedef struct placer {
    const nd_model_spec *model;
    const nd_param_list *params;
    const nd_layout *layout;
    const nd_chunk_map *chunks;
    nd_placement *out;
    int32_t coords[ND_AXIS_COUNT];
    int32_t units_capacity, pieces_capacity;
} placer;

static bool on_stage(const placer *p, int32_t layer)
{
    for (int32_t chunk = 0; chunk < p->chunks->chunks; chunk++) {
        if (layer >= p->chunks->first[chunk] && layer < p->chunks->first[chunk + 1]) {
            return chunk % p->layout->size[ND_AXIS_PP] == p->coords[ND_AXIS_PP];
        }
    }
    return false;
}

static bool is_first_stage(const placer *p)
{
    return p->coords[ND_AXIS_PP] == 0;
}

static bool is_last_stage(const placer *p)
{
    return p->coords[ND_AXIS_PP] == p->layout->size[ND_AXIS_PP] - 1;
}

static bool is_routed(nd_role role)
{
    return role == ND_ROLE_EXPERT_GATE || role == ND_ROLE_EXPERT_UP || role == ND_ROLE_EXPERT_DOWN;
}

static nd_unit_kind unit_of(const nd_param *param)
{
    if (param->layer >= 0) {
        return is_routed(param->role) ? ND_UNIT_EXPERTS : ND_UNIT_LAYER;
    }
    return param->role == ND_ROLE_EMBED || param->role == ND_ROLE_POSITIONS ? ND_UNIT_EMBED : ND_UNIT_HEAD;
}

static bool holds(const placer *p, const nd_param *param)
{
    switch (unit_of(param)) {
    case ND_UNIT_EMBED:
        return is_first_stage(p) || (p->model->tied_embeddings && is_last_stage(p));
    case ND_UNIT_HEAD:
        return is_last_stage(p);
    case ND_UNIT_LAYER:
        return on_stage(p, param->layer);
    case ND_UNIT_EXPERTS:
        break;
    }
    int64_t ep = p->layout->ep;
    int64_t member = nd_members_of(p->layout, p->model->kv_heads, ND_MEMBERS_EP, p->out->rank).index;
    return on_stage(p, param->layer) && param->expert / (p->model->experts / ep) == member;
}

/* Cut columns of a vector and rows of a matrix: a bias is divided like the rows of its matrix. */
static void cut_outputs(const nd_param *param, nd_piece *piece, int64_t first, int64_t count)
{
    if (param->rows == 1) {
        piece->col_first = first;
        piece->cols = count;
    } else {
        piece->row_first = first;
        piece->rows = piece->valid_rows = count;
    }
}

static void cut_kv_heads(const placer *p, const nd_param *param, nd_piece *piece)
{
    int64_t tp = p->layout->size[ND_AXIS_TP];
    int64_t t = p->coords[ND_AXIS_TP];
    int64_t heads = p->model->kv_heads;
    int64_t dim = p->model->head_dim;
    if (tp <= heads) {
        cut_outputs(param, piece, t * (heads / tp) * dim, heads / tp * dim);
        return;
    }
    cut_outputs(param, piece, t * heads / tp * dim, dim);
    piece->primary = piece->primary && t % (tp / heads) == 0;
}

static void cut_vocabulary(const placer *p, const nd_param *param, nd_piece *piece)
{
    int64_t tp = p->layout->size[ND_AXIS_TP];
    int64_t rows = (param->rows + tp - 1) / tp;
    int64_t first = p->coords[ND_AXIS_TP] * rows;
    int64_t left = param->rows - first;
    piece->row_first = first;
    piece->rows = rows;
    piece->valid_rows = left < 0 ? 0 : left < rows ? left : rows;
}

static nd_piece cut(const placer *p, int32_t index)
{
    const nd_param *param = &p->params->params[index];
    int64_t tp = p->layout->size[ND_AXIS_TP];
    int64_t t = p->coords[ND_AXIS_TP];
    nd_piece piece = {.param = index,
                      .rows = param->rows,
                      .cols = param->cols,
                      .valid_rows = param->rows,
                      /* of a tied embedding the first stage's copy counts */
                      .primary = unit_of(param) != ND_UNIT_EMBED || is_first_stage(p)};
    nd_param_split split = param->split;
    if (split == ND_PARAM_EXPERT && p->layout->ep == 1) {
        split = param->role == ND_ROLE_EXPERT_DOWN ? ND_PARAM_COLS : ND_PARAM_ROWS;
    }
    switch (split) {
    case ND_PARAM_WHOLE:
        piece.primary = piece.primary && t == 0;
        break;
    case ND_PARAM_ROWS: {
        int64_t outputs = (param->rows == 1 ? param->cols : param->rows) / tp;
        cut_outputs(param, &piece, t * outputs, outputs);
        break;
    }
    case ND_PARAM_COLS:
        piece.cols = param->cols / tp;
        piece.col_first = t * piece.cols;
        break;
    case ND_PARAM_VOCAB:
        cut_vocabulary(p, param, &piece);
        break;
    case ND_PARAM_KV_HEADS:
        cut_kv_heads(p, param, &piece);
        break;
    case ND_PARAM_EXPERT: /* ep > 1: whole, by the experts that the rank holds */
        break;
    }
    return piece;
}

static bool grow(void **array, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    int32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
    void *larger = realloc(*array, (size_t)wanted * size);
    if (larger == NULL) {
        return false;
    }
    *array = larger;
    *capacity = wanted;
    return true;
}

/* The unit of this kind and layer, new when the last one is another. */
static nd_unit *open_unit(placer *p, nd_unit_kind kind, int32_t layer)
{
    nd_placement *out = p->out;
    if (out->units_count > 0) {
        nd_unit *last = &out->units[out->units_count - 1];
        if (last->kind == kind && last->layer == layer) {
            return last;
        }
    }
    if (!grow((void **)&out->units, out->units_count, &p->units_capacity, sizeof *out->units)) {
        return NULL;
    }
    nd_unit *unit = &out->units[out->units_count++];
    *unit = (nd_unit){.kind = kind, .layer = layer, .first_piece = out->pieces_count};
    return unit;
}

static bool place(placer *p, int32_t index)
{
    const nd_param *param = &p->params->params[index];
    if (!holds(p, param)) {
        return true;
    }
    nd_unit *unit = open_unit(p, unit_of(param), param->layer);
    nd_placement *out = p->out;
    if (unit == NULL || !grow((void **)&out->pieces, out->pieces_count, &p->pieces_capacity, sizeof *out->pieces)) {
        return false;
    }
    nd_piece piece = cut(p, index);
    piece.offset = unit->elements;
    unit->elements += piece.rows * piece.cols;
    unit->pieces++;
    out->pieces[out->pieces_count++] = piece;
    return true;
}

static void shard(const placer *p, nd_unit *unit)
{
    unit->shard = unit->kind == ND_UNIT_EXPERTS ? ND_MEMBERS_EXPERT_SHARD : ND_MEMBERS_SHARD;
    nd_members group = nd_members_of(p->layout, p->model->kv_heads, unit->shard, p->out->rank);
    bool shards = p->layout->sharding != ND_SHARDING_NONE;
    unit->shards = shards ? group.count : 1;
    unit->shard_index = shards ? group.index : 0;
    int64_t share = (unit->elements + unit->shards - 1) / unit->shards;
    unit->shard_elements = (share + shard_multiple - 1) / shard_multiple * shard_multiple;
}

nd_status nd_placement_create(const nd_model_spec *model, const nd_param_list *params, const nd_layout *layout,
                              const nd_chunk_map *chunks, int64_t rank, nd_placement *out, nd_error *err)
{
    nd_placement placement = {.rank = rank};
    placer p = {.model = model, .params = params, .layout = layout, .chunks = chunks, .out = &placement};
    nd_mesh_coords(layout, rank, p.coords);
    for (int32_t i = 0; i < params->count; i++) {
        if (!place(&p, i)) {
            nd_placement_free(&placement);
            return nd_fail(err, ND_ENOMEM, "out of memory for the parameters of rank %lld", (long long)rank);
        }
    }
    for (int32_t i = 0; i < placement.units_count; i++) {
        shard(&p, &placement.units[i]);
    }
    *out = placement;
    return ND_OK;
}

void nd_placement_free(nd_placement *placement)
{
    if (placement != NULL) {
        free(placement->units);
        free(placement->pieces);
        *placement = (nd_placement){0};
    }
}

const nd_unit *nd_placement_unit(const nd_placement *placement, nd_unit_kind kind, int32_t layer)
{
    for (int32_t i = 0; i < placement->units_count; i++) {
        if (placement->units[i].kind == kind && placement->units[i].layer == layer) {
            return &placement->units[i];
        }
    }
    return NULL;
}

const nd_piece *nd_placement_piece(const nd_placement *placement, const nd_param_list *params, const nd_unit *unit,
                                   nd_role role)
{
    for (int32_t i = 0; i < unit->pieces; i++) {
        const nd_piece *piece = &placement->pieces[unit->first_piece + i];
        if (params->params[piece->param].role == role) {
            return piece;
        }
    }
    return NULL;
}

/* The part of one piece in first .. end - 1 of the flat unit, row by row. */
static void piece_runs(const nd_piece *piece, int64_t first, int64_t end, nd_placement_run run, void *user)
{
    int64_t from = first > piece->offset ? first - piece->offset : 0;
    int64_t valid = piece->valid_rows * piece->cols;
    int64_t to = end - piece->offset < valid ? end - piece->offset : valid;
    while (from < to) {
        int64_t row = from / piece->cols;
        int64_t col = from % piece->cols;
        int64_t left = piece->cols - col;
        int64_t count = to - from < left ? to - from : left;
        run(user, piece, piece->offset + from, piece->row_first + row, piece->col_first + col, count);
        from += count;
    }
}

void nd_placement_runs(const nd_placement *placement, const nd_unit *unit, int64_t first, int64_t count,
                       nd_placement_run run, void *user)
{
    for (int32_t i = 0; i < unit->pieces; i++) {
        piece_runs(&placement->pieces[unit->first_piece + i], first, first + count, run, user);
    }
}
