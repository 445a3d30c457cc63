/** One rank of a run: its program, its device and memory, and what it measured. */
#ifndef ND_EXECUTOR_RANK_H
#define ND_EXECUTOR_RANK_H

#include "executor/backend.h"
#include "executor/comm.h"
#include "executor/data.h"
#include "executor/init.h"
#include "program/program.h"

ND_BEGIN_DECLS

typedef struct nd_rank nd_rank;

typedef struct nd_rank_options {
    const nd_backend *backend;
    nd_comm *comm; /* shared by all ranks */
    const nd_data *data;
    int64_t kv_heads; /* of the model */
    bool check_nan;   /* look for NaN and infinity in what every instruction wrote */
    bool profile;     /* keep the time of every instruction */
    bool poison;      /* memory outside living buffers holds NaN (integers: -1), so that what reads it shows in every
                       * number after; with the address sanitizer, touching it ends the program. For tests: a list that
                       * runs in order, on a device whose arena is this process's memory */
} nd_rank_options;

/** Memory and time of one rank so far. */
typedef struct nd_rank_measured {
    int64_t peak_bytes; /* counted while running, by every allocation and free */
    int64_t peak_class_bytes[ND_MEMORY_CLASS_COUNT];
    const double *start_s, *end_s; /* [ins_count] of the last step, seconds of nd_monotonic_s(); NULL without profile */
} nd_rank_measured;

/** Open the device of `program`'s rank and reserve its arena. `program` is borrowed.
 * \return ND_ENOMEM, ND_EUNSUPPORTED */
nd_status nd_rank_open(const nd_program *program, const nd_rank_options *options, nd_rank **out,
                       nd_error *err) ND_NODISCARD;
void nd_rank_close(nd_rank *rank); /* NULL is fine */

/** Initial weights, moments at zero. */
nd_status nd_rank_init(nd_rank *rank, const nd_init_options *options, nd_error *err) ND_NODISCARD;

/** Run the program once: all ranks must be in their step at the same time.
 * \return what failed, with rank, instruction and layer in the message; ND_EINTERRUPTED when another rank failed */
nd_status nd_rank_step(nd_rank *rank, const nd_step *step, nd_error *err) ND_NODISCARD;

/** Where the rank is in its step, or was when it failed: "rank 3, instruction 17 (gemm, attention q), layer 1". */
enum { ND_RANK_WHERE_MAX = 160 };
void nd_rank_where(const nd_rank *rank, char text[ND_RANK_WHERE_MAX]);

/** Loss and gradient norm of the last step. */
double nd_rank_loss(nd_rank *rank);
double nd_rank_grad_norm(nd_rank *rank);

/** Copy `elements` numbers from or to a buffer as fp64. */
void nd_rank_read(nd_rank *rank, nd_ref from, int64_t elements, double *out);
void nd_rank_write(nd_rank *rank, nd_ref to, int64_t elements, const double *in);

const nd_program *nd_rank_program(const nd_rank *rank);
nd_rank_measured nd_rank_measured_get(const nd_rank *rank);

/* For executors that run instructions in another order (tests/executor). */

/** The call of instruction `index` with its operands found. */
nd_call nd_rank_call(nd_rank *rank, int32_t index, const nd_step *step);
nd_status nd_rank_compute(nd_rank *rank, const nd_call *call, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
