/** The file that --plot names. */
#ifndef ND_CLI_PLOT_FILE_H
#define ND_CLI_PLOT_FILE_H

#include "cli/options.h"
#include "cli/output_file.h"

/** Before anything is computed: a picture is SVG, so that another suffix would promise what the file is not.
 * \param[in] path  may be NULL: no picture is asked for */
nd_status nd_plot_path_check(const char *path, nd_error *err) ND_NODISCARD;

/** Writes the picture of `view` to `out`. */
typedef nd_status (*nd_plot_writer)(FILE *out, const void *view, nd_error *err);

/** The whole picture or none; a failure names --plot and the file. */
nd_status nd_plot_file_write(const char *path, nd_plot_writer write, const void *view, nd_error *err) ND_NODISCARD;

#endif
