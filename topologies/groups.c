#include "core/integers.h"
#include "topologies/cluster_spec.h"

/* Beyond this many different placements the bound over all of them is taken. */
static const int64_t placements_max = 1024;

static int64_t at_least_one(int64_t value)
{
    return value < 1 ? 1 : value;
}

/* Fewest members in one domain of a group whose block of ranks starts `start` ranks after a domain boundary. The block
 * holds `stride` such groups, shifted by one rank each; the worst of them counts. */
static int64_t members_at(int64_t start, int64_t ranks, int64_t stride, int64_t domain)
{
    int64_t length = ranks * stride;
    if (start + length <= domain) {
        return ranks;
    }
    int64_t first = at_least_one((domain - start) / stride);
    int64_t last_boundary = (start + length - 1) / domain * domain - start;
    int64_t last = at_least_one(ranks - (last_boundary + stride - 1) / stride);
    int64_t fewest = first < last ? first : last;
    if (last_boundary > domain - start) { /* whole domains lie between */
        int64_t middle = at_least_one(domain / stride);
        fewest = middle < fewest ? middle : fewest;
    }
    return fewest;
}

/* Members that share a domain, for the worst-placed group: all wait for it. */
static int64_t members_of_domain(int64_t gpus, int64_t ranks, int64_t stride, int64_t domain)
{
    int64_t length = ranks * stride;
    if (stride >= domain) {
        return 1;
    }
    if (domain >= gpus || domain % length == 0) {
        return ranks;
    }
    if (length % domain == 0 && domain % stride == 0) {
        return domain / stride;
    }
    int64_t step = nd_greatest_common_divisor(length, domain);
    int64_t placements = domain / step;
    int64_t blocks = at_least_one(gpus / length);
    if (blocks >= placements && placements > placements_max) {
        return at_least_one(step / stride);
    }
    int64_t count = blocks < placements ? blocks : placements;
    int64_t fewest = ranks;
    for (int64_t block = 0; block < count && block < placements_max; block++) {
        int64_t members = members_at(block * length % domain, ranks, stride, domain);
        fewest = members < fewest ? members : fewest;
    }
    return fewest;
}

void nd_cluster_group_members(const nd_cluster_spec *cluster, int64_t ranks, int64_t stride,
                              int64_t members[ND_TIERS_MAX])
{
    int64_t below = 1;
    ranks = at_least_one(ranks);
    stride = at_least_one(stride);
    for (int64_t i = 0; i < ND_TIERS_MAX; i++) {
        int64_t count = ranks;
        if (i + 1 < cluster->tiers_count) {
            count = members_of_domain(cluster->gpus, ranks, stride, cluster->tiers[i].span_gpus);
        }
        members[i] = count < below ? below : count; /* a wider domain never holds fewer */
        below = members[i];
    }
}
