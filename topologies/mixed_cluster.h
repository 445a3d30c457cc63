/** A mixed cluster: up to four kinds of node, each a cluster of its own, and the network between them.
 *
 * Equal nodes named twice are one kind: "2x8xh100+2x8xh100" is 4x8xh100.
 */
#ifndef ND_TOPOLOGIES_MIXED_CLUSTER_H
#define ND_TOPOLOGIES_MIXED_CLUSTER_H

#include "topologies/cluster_spec.h"

ND_BEGIN_DECLS

enum { ND_MIXED_PARTS_MAX = 4 };

typedef struct nd_mixed_cluster {
    char name[ND_CLUSTER_NAME_MAX];
    int32_t parts_count; /* kinds of node; 1: not mixed after all */
    nd_cluster_spec parts[ND_MIXED_PARTS_MAX];
    int64_t gpus;             /* of all parts */
    bool between_stated;      /* the file says what network joins the parts ... */
    char between_network[48]; /* ... its type ... */
    nd_node_facts between;    /* ... and its NICs; the other facts mean nothing */
    char note[256];           /* which parts were taken as one, or empty */
} nd_mixed_cluster;

/** Whether what `--cluster` was given names several parts: PART+PART, or a topology file with "parts". A file that
 * cannot be read is none. */
bool nd_mixed_cluster_is(const char *text);

/** Resolve it. Each part of PART+PART is what nd_cluster_load() takes; a text without '+' is one part.
 * \return what nd_cluster_load() returns, and ND_EINVAL for an empty part, more than ND_MIXED_PARTS_MAX kinds, more
 * than 1,048,576 GPUs, or GPUs of several vendors, whose collectives do not talk to each other. */
nd_status nd_mixed_cluster_load(const char *text, nd_mixed_cluster *out, nd_error *err) ND_NODISCARD;

/** Parse the text of a topology file with "parts". */
nd_status nd_mixed_cluster_parse(const char *text, size_t length, const char *origin, nd_mixed_cluster *out,
                                 nd_error *err) ND_NODISCARD;

/** The only part, or ND_EUNSUPPORTED that says what can plan several. */
nd_status nd_mixed_cluster_single(const nd_mixed_cluster *mixed, nd_cluster_spec *out, nd_error *err) ND_NODISCARD;

/** All nodes as if each were the slowest of them in every respect: least memory, peaks, links, NICs and host. Nodes use
 * as many GPUs as the smallest has; the others idle. Calibrations are not looked at.
 * \param[out] idle  GPUs left over; may be NULL */
nd_status nd_mixed_cluster_slowest(const nd_mixed_cluster *mixed, nd_cluster_spec *out, int64_t *idle,
                                   nd_error *err) ND_NODISCARD;

/** Two nodes joined by the network between part `a` and part `b`: the stated one, or that of the side whose NICs leave
 * a GPU less. Transfers between the parts are priced on it, from a GPU of the first node to one of the second. \return
 * ND_EINVAL when a side states no network. */
nd_status nd_mixed_cluster_between(const nd_mixed_cluster *mixed, int32_t a, int32_t b, nd_cluster_spec *out,
                                   nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
