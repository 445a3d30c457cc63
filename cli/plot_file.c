#include "cli/plot_file.h"

#include <string.h>
#include <strings.h>

nd_status nd_plot_path_check(const char *path, nd_error *err)
{
    static const char suffix[] = ".svg";
    size_t length = path != NULL ? strlen(path) : 0;
    if (path == NULL || (length >= strlen(suffix) && strcasecmp(path + length - strlen(suffix), suffix) == 0)) {
        return ND_OK;
    }
    return nd_fail(err, ND_EINVAL, "--plot writes SVG: give a file name that ends in .svg, got '%.200s'", path);
}

nd_status nd_plot_file_write(const char *path, nd_plot_writer write, const void *view, nd_error *err)
{
    nd_output_file file;
    nd_error inner;
    nd_status status = nd_output_open(path, &file, &inner);
    if (status != ND_OK) {
        return nd_fail(err, status, "--plot: %.900s", inner.message);
    }
    nd_error drawn;
    nd_status result = write(file.stream, view, &drawn);
    status = nd_output_close(&file, result, &inner);
    if (result != ND_OK) {
        return nd_fail(err, result, "--plot %.200s: %.600s", path, drawn.message);
    }
    return status == ND_OK ? ND_OK : nd_fail(err, status, "--plot: %.900s", inner.message);
}
