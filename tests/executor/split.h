/** Which layers a stage holds in tests of whole steps. */
#ifndef ND_TESTS_EXECUTOR_SPLIT_H
#define ND_TESTS_EXECUTOR_SPLIT_H

#include "program/program.h"

/** The chunks that `ndplan run` gives a layout with split=balanced; of other layouts the program's own. */
nd_chunk_map split_of(const nd_model_spec *model, const nd_layout *layout, const nd_train_spec *train);

#endif
