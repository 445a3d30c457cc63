/** A whole training run from one step: days, dollars, energy, checkpoints, and what failures leave of it.
 *
 * Equations and sources of the defaults: docs/MODEL.md, "Runs".
 */
#ifndef ND_COST_MODEL_RUN_COST_H
#define ND_COST_MODEL_RUN_COST_H

#include "cost_model/checkpoint.h"
#include "cost_model/goodput.h"

ND_BEGIN_DECLS

/** What is asked of the run. Start from nd_run_spec_default(). */
typedef struct nd_run_spec {
    double tokens;                       /* to train on; 0: not said, then only rates per token are known */
    double price_usd_per_gpu_hour;       /* 0: unknown */
    double failures_per_gpu_hour;        /* >= 0; every failure stops the whole job */
    double checkpoint_interval_s;        /* of work between two saves; 0: the best one */
    double storage_bytes_per_s;          /* of the shared storage, all nodes together; 0: the default per node */
    double restart_s;                    /* to notice a failure and to start again, without reading the checkpoint */
    double host_factor;                  /* power of a whole node against its GPUs' */
    double facility_factor;              /* power of the site against its nodes' (PUE) */
    double storage_per_node_bytes_per_s; /* used where the storage is not said */
} nd_run_spec;

/** Failures as in the Llama 3 report, the best interval, 1 GB/s of storage per node, ten minutes to restart. */
nd_run_spec nd_run_spec_default(void);

/** One way to save: everything that follows from how long a save blocks training. */
typedef struct nd_save_plan {
    double blocking_s;      /* a save stops training for so long */
    double best_interval_s; /* HUGE_VAL without failures */
    double interval_s;      /* the one in use */
    double goodput_frac;    /* of the wall time that becomes lasting progress */
} nd_save_plan;

/** Rates are per token and hold whether tokens were given or not; what needs tokens is 0 without them. */
typedef struct nd_run_cost {
    int64_t gpus, nodes;
    nd_saved_state saved;
    nd_save_times save;
    double storage_bytes_per_s;
    double mtbf_s;       /* of the job; HUGE_VAL without failures */
    double restart_s;    /* reading the checkpoint included */
    nd_save_plan plain;  /* training waits for every save: what the totals below assume */
    nd_save_plan async;  /* training waits for the copy to host memory only */
    double tokens_per_s; /* of wall time, failures and saves included */
    double gpu_power_w;  /* of all GPUs at their power cap; 0: unknown */
    double site_power_w; /* with hosts and cooling */
    double usd_per_hour; /* 0: no price */
    double usd_per_million_tokens;
    double tokens_per_usd;
    double joule_per_token; /* of the site */
    /* with tokens only */
    double steps;
    double steady_s;                /* without failures and saves */
    double wall_s;                  /* with them */
    double wall_low_s, wall_high_s; /* from the 80 % interval of the step */
    double failures;                /* expected over wall_s */
    double gpu_hours;
    double usd, usd_low, usd_high;
    double gpu_joule, site_joule;
} nd_run_cost;

/** \param[in] layout    passed nd_layout_allowed(); its ranks are the GPUs that are paid for
 * \param[in] estimate   of that layout */
void nd_run_cost_of(const nd_cost_context *context, const nd_layout *layout, const nd_estimate *estimate,
                    const nd_run_spec *spec, nd_run_cost *out);

ND_END_DECLS

#endif
