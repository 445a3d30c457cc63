/** The program of a rank as text: what it needs, what it communicates, and its instructions. */
#ifndef ND_REPORTS_PROGRAM_REPORT_H
#define ND_REPORTS_PROGRAM_REPORT_H

#include "program/program.h"
#include "reports/table.h"

ND_BEGIN_DECLS

enum { ND_PROGRAM_LINES_DEFAULT = 60 };

/** \param[in] kv_heads  of the model
 * \param[in] lines     instructions to print at most; allocations and frees are part of the lines of others
 * \return ND_ENOMEM */
nd_status nd_report_program(FILE *stream, const nd_report_style *style, const nd_program *program, int64_t kv_heads,
                            int32_t lines, nd_error *err) ND_NODISCARD;

ND_END_DECLS

#endif
