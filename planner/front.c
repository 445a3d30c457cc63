#include "planner/front_internal.h"

#include <stdlib.h>
#include <string.h>

enum { FIRST_CAPACITY = 64 };

/* Corners that are, times 1 + margin, at least as fast as step_s: the first so many. */
static int32_t count_faster(const nd_front *front, double step_s, double margin_frac)
{
    int32_t low = 0;
    int32_t high = front->corners_count;
    while (low < high) {
        int32_t middle = low + (high - low) / 2;
        if (front->corners[middle].step_s * (1.0 + margin_frac) <= step_s) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

static bool beats(const nd_front *front, double step_s, double peak_bytes, double margin_frac)
{
    int32_t faster = count_faster(front, step_s, margin_frac);
    if (faster == 0) {
        return false;
    }
    const nd_front_corner *smallest = &front->corners[faster - 1];
    return smallest->peak_bytes < peak_bytes || (smallest->peak_bytes == peak_bytes && smallest->step_s < step_s);
}

bool nd_front_beats(const nd_front *front, double step_s, double peak_bytes)
{
    return beats(front, step_s, peak_bytes, front->margin_frac);
}

/* Room for one more of `size` bytes. */
static bool grow(nd_front *front, void **array, int32_t count, int32_t *capacity, size_t size)
{
    if (count < *capacity) {
        return true;
    }
    int32_t wanted = *capacity > 0 ? 2 * *capacity : FIRST_CAPACITY;
    void *grown = realloc(*array, (size_t)wanted * size);
    if (grown == NULL) {
        front->failed = true;
        return false;
    }
    *array = grown;
    *capacity = wanted;
    return true;
}

/* A corner takes the place of those that are slower and not smaller. */
static void add_corner(nd_front *front, const nd_ranked *candidate)
{
    int32_t at = count_faster(front, candidate->step_s, 0.0);
    if (at > 0 && front->corners[at - 1].peak_bytes <= candidate->peak_bytes) {
        return;
    }
    at -= at > 0 && front->corners[at - 1].step_s == candidate->step_s; /* the same time with more memory */
    int32_t end = at;
    while (end < front->corners_count && front->corners[end].peak_bytes >= candidate->peak_bytes) {
        end++;
    }
    void *corners = front->corners;
    if (!grow(front, &corners, front->corners_count, &front->corners_capacity, sizeof front->corners[0])) {
        return;
    }
    front->corners = corners;
    memmove(front->corners + at + 1, front->corners + end,
            (size_t)(front->corners_count - end) * sizeof front->corners[0]);
    front->corners[at] = (nd_front_corner){candidate->step_s, candidate->peak_bytes};
    front->corners_count += 1 - (end - at);
}

static void drop_beaten(nd_front *front)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < front->count; i++) {
        if (!nd_front_beats(front, front->entries[i].step_s, front->entries[i].peak_bytes)) {
            front->entries[kept++] = front->entries[i];
        }
    }
    front->count = kept;
}

void nd_front_add(nd_front *front, const nd_ranked *candidate)
{
    bool rather_fits = candidate->verdict != ND_VERDICT_NO && candidate->peak_bytes <= candidate->capacity_bytes;
    if (!rather_fits || nd_front_beats(front, candidate->step_s, candidate->peak_bytes)) {
        return;
    }
    if (front->count == front->capacity) {
        drop_beaten(front);
    }
    /* an array that stays nearly full would be gone through for every entry */
    int32_t needed = 4 * front->count > 3 * front->capacity ? front->capacity : front->count;
    void *entries = front->entries;
    if (!grow(front, &entries, needed, &front->capacity, sizeof front->entries[0])) {
        return;
    }
    front->entries = entries;
    front->entries[front->count++] = *candidate;
    add_corner(front, candidate);
}

void nd_front_merge(nd_front *front, const nd_front *other)
{
    front->failed = front->failed || other->failed;
    for (int32_t i = 0; i < other->count; i++) {
        nd_front_add(front, &other->entries[i]);
    }
}

void nd_front_clear(nd_front *front)
{
    front->corners_count = 0;
    front->count = 0;
    front->failed = false;
}

static int by_time(const void *left, const void *right)
{
    return nd_ranked_compare(ND_OBJECTIVE_THROUGHPUT, left, right);
}

void nd_front_finish(nd_front *front)
{
    int32_t kept = 0;
    if (front->count == 0) {
        return;
    }
    qsort(front->entries, (size_t)front->count, sizeof front->entries[0], by_time);
    for (int32_t i = 0; i < front->count; i++) {
        if (kept == 0 || front->entries[i].peak_bytes < front->entries[kept - 1].peak_bytes) {
            front->entries[kept++] = front->entries[i];
        }
    }
    front->count = kept;
}

nd_status nd_front_list(nd_front *front, nd_plan_list *list, nd_error *err)
{
    nd_front_finish(front);
    nd_plan *plans = front->failed ? NULL : realloc(list->plans, (size_t)(front->count + 1) * sizeof *plans);
    if (plans == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory for a front of %d plans", (int)front->count);
    }
    list->plans = plans;
    list->count = front->count;
    return ND_OK;
}

void nd_front_free(nd_front *front)
{
    free(front->corners);
    free(front->entries);
    memset(front, 0, sizeof *front);
}
