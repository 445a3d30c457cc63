#include "reports/terms.h"

#include <math.h>
#include <string.h>

#define MEMORY(name, label)                                                                                            \
    {                                                                                                                  \
#name, label, offsetof(nd_memory_breakdown, name), false                                                       \
    }
#define TIME(name, label, part)                                                                                        \
    {                                                                                                                  \
#name, label, offsetof(nd_time_breakdown, name), part                                                          \
    }

const nd_term nd_memory_terms[] = {
    MEMORY(weights_bytes, "weights"),
    MEMORY(grads_bytes, "gradients"),
    MEMORY(optimizer_bytes, "optimizer states"),
    MEMORY(activations_bytes, "activations"),
    MEMORY(gather_buffers_bytes, "gathered layers and buffers"),
    MEMORY(logits_bytes, "logits and loss"),
    MEMORY(overhead_bytes, "allocator, context, communicators"),
    {NULL, NULL, 0, false},
};

const nd_term nd_time_terms[] = {
    TIME(compute_s, "forward and backward compute", false),
    TIME(gemm_s, "matrix products", true),
    TIME(attention_s, "attention", true),
    TIME(elementwise_s, "element-wise kernels", true),
    TIME(head_s, "output head and loss (in the above)", true),
    TIME(recompute_s, "recomputation", false),
    TIME(exposed_comm_s, "exposed communication", false),
    TIME(exposed_tp_s, "tensor parallel", true),
    TIME(exposed_cp_s, "context parallel", true),
    TIME(exposed_ep_s, "expert parallel", true),
    TIME(exposed_pp_s, "pipeline transfers", true),
    TIME(exposed_dp_s, "data parallel and sharding", true),
    TIME(bubble_s, "pipeline bubble", false),
    TIME(optimizer_s, "optimizer", false),
    TIME(other_s, "other", false),
    TIME(contention_s, "contention with hidden communication", true),
    TIME(straggler_s, "waiting for the slowest", true),
    TIME(host_s, "host", true),
    TIME(offload_s, "offload transfers", true),
    {NULL, NULL, 0, false},
};

double nd_memory_term(const nd_memory_breakdown *memory, const nd_term *term)
{
    double value = 0.0;
    memcpy(&value, (const char *)memory + term->offset, sizeof value);
    return value;
}

double nd_time_term(const nd_time_breakdown *time, const nd_term *term)
{
    double value = 0.0;
    memcpy(&value, (const char *)time + term->offset, sizeof value);
    return value;
}

const nd_term *nd_time_terms_largest_difference(const nd_time_breakdown *a, const nd_time_breakdown *b, double least_s)
{
    const nd_term *largest = NULL;
    double most_s = least_s;
    for (const nd_term *term = nd_time_terms; term->key != NULL; term++) {
        bool has_parts = !term->part && (term + 1)->key != NULL && (term + 1)->part;
        double difference_s = nd_time_term(b, term) - nd_time_term(a, term);
        if (!has_parts && difference_s > most_s) {
            largest = term;
            most_s = difference_s;
        }
    }
    return largest;
}
