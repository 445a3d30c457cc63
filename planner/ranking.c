#include "planner/ranking_internal.h"

#include <math.h>
#include <string.h>

static int by_double(double a, double b)
{
    double x = isnan(a) ? HUGE_VAL : a;
    double y = isnan(b) ? HUGE_VAL : b;
    return (x > y) - (x < y);
}

static int by_int(int64_t a, int64_t b)
{
    return (a > b) - (a < b);
}

int nd_axes_in_use(const nd_layout *layout)
{
    int axes = layout->ep > 1;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        axes += layout->size[axis] > 1;
    }
    return axes;
}

static int by_layout(const nd_layout *a, const nd_layout *b)
{
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        if (a->size[axis] != b->size[axis]) {
            return by_int(a->size[axis], b->size[axis]);
        }
    }
    const int64_t pairs[][2] = {
        {a->ep, b->ep},
        {a->vpp, b->vpp},
        {(int64_t)a->schedule, (int64_t)b->schedule},
        {(int64_t)a->split, (int64_t)b->split},
        {(int64_t)a->sharding, (int64_t)b->sharding},
        {(int64_t)a->recompute, (int64_t)b->recompute},
        {a->recompute_every, b->recompute_every},
        {a->micro_batch, b->micro_batch},
        {a->grad_accum, b->grad_accum},
        {a->sequence_parallel, b->sequence_parallel},
        {(int64_t)a->cp_method, (int64_t)b->cp_method},
        {(int64_t)a->offload, (int64_t)b->offload},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        if (pairs[i][0] != pairs[i][1]) {
            return by_int(pairs[i][0], pairs[i][1]);
        }
    }
    return 0;
}

static int doubt(double peak_bytes, double capacity_bytes, nd_verdict verdict)
{
    return (peak_bytes > capacity_bytes) + (verdict == ND_VERDICT_NO);
}

static int doubt_of(const nd_ranked *entry)
{
    return doubt(entry->peak_bytes, entry->capacity_bytes, entry->verdict);
}

int nd_memory_doubt(const nd_memory_breakdown *memory)
{
    return doubt(memory->peak_bytes, memory->capacity_bytes, memory->verdict);
}

int nd_ranked_compare(nd_objective objective, const nd_ranked *a, const nd_ranked *b)
{
    int order = by_int(doubt_of(a), doubt_of(b));
    if (order != 0) {
        return order;
    }
    int time = by_double(a->step_s, b->step_s);
    int memory = by_double(a->peak_bytes, b->peak_bytes);
    bool memory_first = objective == ND_OBJECTIVE_MEMORY;
    order = memory_first ? memory : time;
    order = order != 0 ? order : memory_first ? time : memory;
    order = order != 0 ? order : by_int(nd_axes_in_use(&a->layout), nd_axes_in_use(&b->layout));
    return order != 0 ? order : by_layout(&a->layout, &b->layout);
}

int nd_ranked_compare_memory(const nd_ranked *a, const nd_ranked *b)
{
    int order = by_double(a->peak_bytes, b->peak_bytes);
    return order != 0 ? order : by_layout(&a->layout, &b->layout);
}

bool nd_same_layout(const nd_layout *a, const nd_layout *b)
{
    return by_layout(a, b) == 0;
}

bool nd_same_mesh(const nd_layout *a, const nd_layout *b)
{
    return memcmp(a->size, b->size, sizeof a->size) == 0 && a->ep == b->ep;
}

static bool same_key(nd_ranking_key key, const nd_ranked *a, const nd_ranked *b)
{
    return key == ND_RANKING_MESH_AND_VERDICT && a->verdict == b->verdict && nd_same_mesh(&a->layout, &b->layout);
}

/* A number that layouts of one mesh and verdict share, and few others (multiplicative hashing, as in FNV-1a). */
static uint32_t tag_of(const nd_ranked *entry)
{
    const uint32_t factor = 16777619u;
    uint32_t tag = (2166136261u ^ (uint32_t)entry->verdict) * factor;
    for (int axis = 0; axis < ND_AXIS_COUNT; axis++) {
        tag = (tag ^ (uint32_t)entry->layout.size[axis]) * factor;
    }
    return (tag ^ (uint32_t)entry->layout.ep) * factor;
}

/* The first entry from `i` on that may have the tag. Blocks are compared without a branch for each tag, which compilers
 * turn into vector code. */
static int32_t next_tag(const nd_ranking *ranking, int32_t i, uint32_t tag)
{
    enum { BLOCK = 16 };
    const uint32_t *tags = ranking->tags;
    if (tags == NULL) {
        return i;
    }
    for (; i + BLOCK <= ranking->count; i += BLOCK) {
        uint32_t found = 0;
        for (int32_t k = 0; k < BLOCK; k++) {
            found |= (uint32_t)(tags[i + k] == tag);
        }
        if (found != 0) {
            break;
        }
    }
    while (i < ranking->count && tags[i] != tag) {
        i++;
    }
    return i;
}

/* The entry of the candidate's key; -1 when there is none. */
static int32_t find_key(const nd_ranking *ranking, const nd_ranked *candidate)
{
    if (ranking->key == ND_RANKING_EVERY_LAYOUT) {
        return -1;
    }
    uint32_t tag = tag_of(candidate);
    for (int32_t i = next_tag(ranking, 0, tag); i < ranking->count; i = next_tag(ranking, i + 1, tag)) {
        if (same_key(ranking->key, candidate, &ranking->entries[i])) {
            return i;
        }
    }
    return -1;
}

/* The slot that `candidate` takes over: its own key's, a new one (= count), or the worst; -1 when it is not good
 * enough. */
static int32_t find_slot(const nd_ranking *ranking, const nd_ranked *candidate)
{
    int32_t last = ranking->count - 1;
    bool full = ranking->count == ranking->capacity;
    if (full && nd_ranked_compare(ranking->objective, candidate, &ranking->entries[last]) >= 0) {
        return -1;
    }
    int32_t mine = find_key(ranking, candidate);
    if (mine >= 0) {
        return nd_ranked_compare(ranking->objective, candidate, &ranking->entries[mine]) < 0 ? mine : -1;
    }
    return full ? last : ranking->count;
}

bool nd_ranking_is_closed(const nd_ranking *ranking, const nd_ranked *bound)
{
    return ranking->count == ranking->capacity &&
           nd_ranked_compare(ranking->objective, bound, &ranking->entries[ranking->count - 1]) >= 0;
}

/* How many of the first `count` entries rank before `candidate`. */
static int32_t count_better(const nd_ranking *ranking, int32_t count, const nd_ranked *candidate)
{
    int32_t low = 0;
    int32_t high = count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (nd_ranked_compare(ranking->objective, &ranking->entries[middle], candidate) < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

bool nd_ranking_would_take(const nd_ranking *ranking, const nd_ranked *candidate)
{
    return find_slot(ranking, candidate) >= 0;
}

void nd_ranking_add(nd_ranking *ranking, const nd_ranked *candidate)
{
    int32_t slot = find_slot(ranking, candidate);
    if (slot < 0) {
        return;
    }
    ranking->count += slot == ranking->count;
    /* The slot's old entry goes; better ones than the candidate stay where they are, the rest move down by one. */
    int32_t place = count_better(ranking, slot, candidate);
    memmove(&ranking->entries[place + 1], &ranking->entries[place],
            (size_t)(slot - place) * sizeof ranking->entries[0]);
    ranking->entries[place] = *candidate;
    if (ranking->tags != NULL) {
        memmove(&ranking->tags[place + 1], &ranking->tags[place], (size_t)(slot - place) * sizeof ranking->tags[0]);
        ranking->tags[place] = tag_of(candidate);
    }
}

void nd_ranking_sort(nd_ranking *ranking)
{
    for (int32_t i = 1; i < ranking->count; i++) { /* almost sorted, and short */
        nd_ranked entry = ranking->entries[i];
        int32_t place = count_better(ranking, i, &entry);
        memmove(&ranking->entries[place + 1], &ranking->entries[place],
                (size_t)(i - place) * sizeof ranking->entries[0]);
        ranking->entries[place] = entry;
    }
    for (int32_t i = 0; ranking->tags != NULL && i < ranking->count; i++) {
        ranking->tags[i] = tag_of(&ranking->entries[i]);
    }
}

/* A layout that may run out of memory and is not faster than one of its mesh that surely fits helps nobody. */
static bool is_pointless(const nd_ranking *meshes, int32_t index)
{
    const nd_ranked *entry = &meshes->entries[index];
    for (int32_t i = 0; i < index; i++) {
        if (nd_same_mesh(&meshes->entries[i].layout, &entry->layout) && meshes->entries[i].verdict < entry->verdict) {
            return true;
        }
    }
    return false;
}

static bool is_chosen(const nd_ranked *chosen, int32_t count, const nd_ranked *entry)
{
    for (int32_t i = 0; i < count; i++) {
        if (nd_same_layout(&chosen[i].layout, &entry->layout)) {
            return true;
        }
    }
    return false;
}

/* A list of one is the best plan; a longer one always has a plan that needs no luck. */
static void keep_safe(const nd_ranked *safe, int32_t count, nd_ranked *out)
{
    for (int32_t i = 0; i < count; i++) {
        if (out[i].verdict == ND_VERDICT_FITS) {
            return;
        }
    }
    if (safe != NULL && count > 1) {
        out[count - 1] = *safe;
    }
}

int32_t nd_ranking_choose(const nd_ranking *meshes, const nd_ranking *all, const nd_ranked *safe, int32_t top,
                          nd_ranked *out)
{
    nd_ranking chosen = {meshes->objective, ND_RANKING_EVERY_LAYOUT, out, top, 0, NULL};
    for (int32_t i = 0; i < meshes->count; i++) {
        if (!is_pointless(meshes, i)) {
            nd_ranking_add(&chosen, &meshes->entries[i]);
        }
    }
    for (int32_t i = 0; i < all->count && chosen.count < top; i++) {
        if (!is_chosen(out, chosen.count, &all->entries[i])) {
            nd_ranking_add(&chosen, &all->entries[i]);
        }
    }
    keep_safe(safe, chosen.count, out);
    return chosen.count;
}
