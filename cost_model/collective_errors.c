#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost_model/fit_collectives.h"

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

int64_t nd_collective_errors(const nd_collective_data *data, const double *seconds, nd_collective_filter take,
                             const void *user, double *median, double *p90)
{
    int64_t count = 0;
    *median = nan("");
    *p90 = nan("");
    double *errors = malloc((size_t)data->points_count * sizeof *errors);
    if (errors == NULL) {
        return 0;
    }
    for (int64_t i = 0; i < data->points_count; i++) {
        if (take == NULL || take(data, i, user)) {
            errors[count++] = fabs(seconds[i] / data->points[i].seconds - 1.0);
        }
    }
    if (count > 0) {
        qsort(errors, (size_t)count, sizeof errors[0], compare);
        *median = (errors[(count - 1) / 2] + errors[count / 2]) / 2.0;
        *p90 = errors[(count * 9 - 1) / 10];
    }
    free(errors);
    return count;
}

/* Does another system than `without` measure what decides the series: its link, or its family's own links with a group
 * of its size? */
static bool others_measured(const nd_collective_data *data, const nd_collective_model *model, int32_t series,
                            int32_t without)
{
    const nd_collective_series *s = &data->series[series];
    int32_t link = nd_collective_series_link(data, model, series);
    for (int32_t i = 0; i < data->series_count; i++) {
        const nd_collective_series *other = &data->series[i];
        int32_t other_link = nd_collective_series_link(data, model, i);
        bool same = link >= 0 ? other_link == link
                              : other_link < 0 && other->family == s->family && other->collective == s->collective &&
                                    other->group.ranks == s->group.ranks;
        if (other->system != without && same) {
            return true;
        }
    }
    return false;
}

/* Fit again without one system whatever it took part in. */
static nd_status fit_without(const nd_collective_data *data, int32_t system, nd_collective_model *model, nd_error *err)
{
    bool families[ND_FAMILIES_MAX] = {false};
    bool links[ND_LINKS_MAX] = {false};
    for (int32_t i = 0; i < data->series_count; i++) {
        if (data->series[i].system == system) {
            int32_t link = nd_collective_series_link(data, model, i);
            families[data->series[i].family] = true;
            if (link >= 0) {
                links[link] = true;
            }
        }
    }
    for (int32_t i = 0; i < model->families_count; i++) {
        if (families[i]) {
            ND_TRY(nd_collective_fit_family(data, i, system, model, err));
        }
    }
    for (int32_t i = 0; i < model->links_count; i++) {
        if (links[i]) {
            ND_TRY(nd_collective_fit_link(data, i, system, model, err));
        }
    }
    return ND_OK;
}

nd_status nd_collective_leave_one_out(const nd_collective_data *data, const nd_collective_model *model, double *seconds,
                                      bool *covered, nd_error *err)
{
    nd_collective_model *trial = malloc(sizeof *trial);
    double *predicted = malloc((size_t)data->points_count * sizeof *predicted);
    nd_status status =
        trial == NULL || predicted == NULL ? nd_fail(err, ND_ENOMEM, "out of memory for leaving systems out") : ND_OK;
    for (int32_t system = 0; status == ND_OK && system < data->systems_count; system++) {
        memcpy(trial, model, sizeof *trial);
        status = fit_without(data, system, trial, err);
        if (status == ND_OK) {
            status = nd_collective_model_predict(data, trial, predicted, err);
        }
        for (int32_t i = 0; status == ND_OK && i < data->series_count; i++) {
            const nd_collective_series *s = &data->series[i];
            bool known = s->system == system && others_measured(data, model, i, system);
            for (int64_t p = s->first; s->system == system && p < s->first + s->count; p++) {
                seconds[p] = predicted[p];
                if (covered != NULL) {
                    covered[p] = known;
                }
            }
        }
    }
    free(predicted);
    free(trial);
    return status;
}
