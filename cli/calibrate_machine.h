/** `ndplan calibrate --machine`. */
#ifndef ND_CLI_CALIBRATE_MACHINE_H
#define ND_CLI_CALIBRATE_MACHINE_H

#include "cli/options.h"

/** Measure this machine, fit its constants, report and write them. \param[out] exit_status set on success */
nd_status nd_calibrate_machine(const nd_options *options, int *exit_status, nd_error *err) ND_NODISCARD;

#endif
