/* Reading: every run of elements from the file of the rank that held it when the checkpoint was saved. */
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "executor/checkpoint_internal.h"

enum { FILES_OPEN = 16 };

/** One call that reads: neighbours in file and memory are read as one, and files stay open for the next run. */
typedef struct reader {
    const nd_checkpoint *c;
    nd_checkpoint_part part;
    nd_status status;
    nd_error *err;
    int64_t open_rank[FILES_OPEN]; /* -1: none */
    int fd[FILES_OPEN];
    int64_t rank, file_offset; /* what waits to be read */
    char *to;
    size_t bytes;
    /* where the runs of a unit go */
    char *out;
    int64_t first;
} reader;

static reader reader_start(const nd_checkpoint *c, nd_checkpoint_part part, nd_error *err)
{
    reader r = {.c = c, .part = part, .status = ND_OK, .err = err};
    for (int i = 0; i < FILES_OPEN; i++) {
        r.open_rank[i] = -1;
    }
    return r;
}

static void flush(reader *r)
{
    char path[ND_DISK_PATH_MAX];
    if (r->bytes == 0 || r->status != ND_OK) {
        return;
    }
    int slot = (int)(r->rank % FILES_OPEN);
    r->status = nd_checkpoint_rank_path(r->c, r->rank, path, r->err);
    if (r->status == ND_OK && r->open_rank[slot] != r->rank) {
        if (r->open_rank[slot] >= 0) {
            (void)close(r->fd[slot]);
            r->open_rank[slot] = -1;
        }
        r->status = nd_checkpoint_rank_open(path, &r->fd[slot], r->err);
        r->open_rank[slot] = r->status == ND_OK ? r->rank : -1;
    }
    if (r->status == ND_OK) {
        r->status = nd_disk_read(r->fd[slot], path, r->to, r->bytes, r->file_offset, r->err);
    }
    r->bytes = 0;
}

static nd_status reader_end(reader *r)
{
    flush(r);
    for (int i = 0; i < FILES_OPEN; i++) {
        if (r->open_rank[i] >= 0) {
            (void)close(r->fd[i]);
        }
    }
    return r->status;
}

static void want(reader *r, int64_t rank, int64_t file_offset, char *to, size_t bytes)
{
    bool next =
        r->bytes > 0 && rank == r->rank && file_offset == r->file_offset + (int64_t)r->bytes && to == r->to + r->bytes;
    if (next) {
        r->bytes += bytes;
        return;
    }
    flush(r);
    r->rank = rank;
    r->file_offset = file_offset;
    r->to = to;
    r->bytes = bytes;
}

/* Consecutive elements from (row, col) on that the holder has; 0 when it has not this one. */
static int64_t held(const nd_checkpoint_holder *h, int64_t row, int64_t col, int64_t *flat)
{
    const nd_piece *p = &h->piece;
    bool inside = row >= p->row_first && row < p->row_first + p->valid_rows && col >= p->col_first &&
                  col < p->col_first + p->cols;
    if (!inside) {
        return 0;
    }
    *flat = p->offset + (row - p->row_first) * p->cols + (col - p->col_first);
    if (*flat < h->first || *flat >= h->end) {
        return 0;
    }
    int64_t row_left = p->col_first + p->cols - col;
    int64_t shard_left = h->end - *flat;
    return row_left < shard_left ? row_left : shard_left;
}

static void read_run(reader *r, int32_t param, int64_t row, int64_t col, int64_t elements, char *to)
{
    const nd_checkpoint *c = r->c;
    int32_t last = c->holders_first[param + 1];
    int32_t at = c->holders_first[param];
    for (int32_t missed = 0; elements > 0 && r->status == ND_OK;) {
        int64_t flat = 0;
        int64_t count = at < last ? held(&c->holders[at], row, col, &flat) : 0;
        if (count == 0) {
            int32_t holders = last - c->holders_first[param];
            if (missed++ >= holders) {
                r->status = nd_fail(r->err, ND_EPARSE, "%s holds no element (%" PRId64 ", %" PRId64 ") of %s",
                                    c->directory, row, col, c->params->params[param].name);
                return;
            }
            at = at + 1 < last ? at + 1 : c->holders_first[param];
            continue;
        }
        missed = 0;
        count = count < elements ? count : elements;
        const nd_checkpoint_holder *h = &c->holders[at];
        int64_t offset = h->file_offset + r->part * h->part_bytes + (flat - h->first) * c->elem_bytes;
        want(r, h->rank, offset, to, (size_t)(count * c->elem_bytes));
        to += count * c->elem_bytes;
        col += count;
        elements -= count;
    }
}

static void unit_run(void *user, const nd_piece *piece, int64_t flat, int64_t row, int64_t col, int64_t elements)
{
    reader *r = user;
    read_run(r, piece->param, row, col, elements, r->out + (flat - r->first) * r->c->elem_bytes);
}

nd_status nd_checkpoint_read(const nd_checkpoint *checkpoint, const nd_placement *placement, const nd_unit *unit,
                             nd_checkpoint_part part, int64_t first, int64_t count, void *out, nd_error *err)
{
    reader r = reader_start(checkpoint, part, err);
    r.out = out;
    r.first = first;
    memset(out, 0, (size_t)(count * checkpoint->elem_bytes));
    nd_placement_runs(placement, unit, first, count, unit_run, &r);
    return reader_end(&r);
}

nd_status nd_checkpoint_read_param(const nd_checkpoint *checkpoint, int32_t param, nd_checkpoint_part part, int64_t row,
                                   int64_t rows, void *out, nd_error *err)
{
    int64_t cols = checkpoint->params->params[param].cols;
    reader r = reader_start(checkpoint, part, err);
    for (int64_t i = 0; i < rows; i++) {
        read_run(&r, param, row + i, 0, cols, (char *)out + i * cols * checkpoint->elem_bytes);
    }
    return reader_end(&r);
}
