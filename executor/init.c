#include "executor/init.h"

#include "executor/random.h"

/* Streams of data come before those of parameters. */
static const uint64_t first_stream = 1000;

nd_init_options nd_init_options_default(void)
{
    return (nd_init_options){.std = 0.02};
}

double nd_init_value(const nd_init_options *options, const nd_param *param, int32_t index, int64_t row, int64_t col)
{
    double base = param->init == ND_INIT_ONES ? 1.0 : 0.0;
    double deviation = param->init == ND_INIT_NORMAL ? options->std : options->noise;
    if (deviation == 0.0) {
        return base;
    }
    uint64_t element = (uint64_t)(row * param->cols + col);
    return base + deviation * nd_random_normal(options->seed, first_stream + (uint64_t)index, element);
}
