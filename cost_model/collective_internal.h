/** What the fit of collectives and its predictions share. */
#ifndef ND_COST_MODEL_COLLECTIVE_INTERNAL_H
#define ND_COST_MODEL_COLLECTIVE_INTERNAL_H

#include "cost_model/fit_collectives.h"

/** Seconds of the points of one series under a model.
 * \param[out] seconds  data->series[series].count */
void nd_collective_predict_series(const nd_collective_data *data, const nd_collective_model *model, int32_t series,
                                  double *seconds);

/** The group lies inside one switched domain of the GPU's own links: what the family's constants describe. */
bool nd_collective_on_own_links(const nd_collective_data *data, const nd_collective_series *series);

#endif
