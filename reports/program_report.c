#include "reports/program_report.h"

#include <inttypes.h>
#include <string.h>

#include "core/text.h"
#include "program/block.h"
#include "program/replay.h"
#include "program/traffic.h"
#include "reports/format.h"

enum { CELL_MAX = 96 };

static bool is_shown(const nd_ins *ins)
{
    return ins->op != ND_INS_ALLOC && ins->op != ND_INS_FREE;
}

static int32_t shown_count(const nd_program *program)
{
    int32_t count = 0;
    for (int32_t i = 0; i < program->ins_count; i++) {
        count += is_shown(&program->ins[i]);
    }
    return count;
}

static const char *pass_name(const nd_ins *ins)
{
    static const char *const names[ND_PASS_COUNT] = {
        [ND_PASS_FORWARD] = "fwd", [ND_PASS_BACKWARD] = "bwd", [ND_PASS_RECOMPUTE] = "again"};
    return ins->micro < 0 ? "step" : names[ins->pass];
}

/* m x n x k of a product, rows x cols of everything else. */
static void shape(const nd_ins *ins, char *text)
{
    switch ((int)ins->op) {
    case ND_INS_GEMM:
        (void)snprintf(text, CELL_MAX, "%" PRId64 "x%" PRId64 "x%" PRId64 "%s", ins->m, ins->n, ins->k,
                       ins->accumulate ? " +=" : "");
        return;
    case ND_INS_GEMM_GROUPED:
        (void)snprintf(text, CELL_MAX, "%" PRId64 " of %" PRId64 "x%" PRId64, ins->groups, ins->n, ins->k);
        return;
    case ND_INS_WAIT:
    case ND_INS_SEND_WAIT:
        (void)snprintf(text, CELL_MAX, "for #%" PRId32, ins->waits_for);
        return;
    default:
        (void)snprintf(text, CELL_MAX, "%" PRId64 "x%" PRId64, ins->rows, ins->cols);
    }
}

/* "b3+128": element 128 of buffer 3. */
static void operand(char *text, nd_ref ref)
{
    size_t used = strlen(text);
    if (ref.buffer == 0 || used + 2 >= CELL_MAX) {
        return;
    }
    const char *space = used > 0 ? " " : "";
    if (ref.offset > 0) {
        (void)snprintf(text + used, CELL_MAX - used, "%sb%" PRId32 "+%" PRId64, space, ref.buffer, ref.offset);
    } else {
        (void)snprintf(text + used, CELL_MAX - used, "%sb%" PRId32, space, ref.buffer);
    }
}

static void number_or_dash(nd_table *table, int32_t value)
{
    char text[CELL_MAX];
    (void)snprintf(text, sizeof text, value < 0 ? "-" : "%" PRId32, value);
    nd_table_add(table, text);
}

static void add_ins(nd_table *table, const nd_ins *ins, int32_t index)
{
    char text[CELL_MAX];
    number_or_dash(table, index);
    nd_table_add(table, nd_stream_name(ins->stream));
    nd_table_add(table, nd_ins_name(ins->op));
    nd_table_add(table, ins->tag != NULL ? ins->tag : "");
    nd_table_add(table, pass_name(ins));
    number_or_dash(table, ins->layer);
    number_or_dash(table, ins->micro);
    shape(ins, text);
    nd_table_add(table, text);
    bool collective = nd_ins_communicates(ins->op);
    bool transfer = ins->op == ND_INS_SEND || ins->op == ND_INS_RECV || ins->op == ND_INS_SEND_WAIT;
    (void)snprintf(text, sizeof text, "rank %" PRId32, ins->peer);
    nd_table_add(table, transfer ? text : collective ? nd_members_name(ins->group) : "");
    text[0] = '\0';
    for (int i = 0; i < ND_INS_IN_MAX; i++) {
        operand(text, ins->in[i]);
    }
    nd_table_add(table, text);
    text[0] = '\0';
    for (int i = 0; i < ND_INS_OUT_MAX; i++) {
        operand(text, ins->out[i]);
    }
    nd_table_add(table, text);
}

static nd_status print_instructions(FILE *stream, const nd_program *program, int32_t lines, nd_error *err)
{
    static const nd_column columns[] = {
        {"#", NULL, ND_ALIGN_RIGHT, 0, 0},        {"stream", NULL, ND_ALIGN_LEFT, 0, 0},
        {"operation", NULL, ND_ALIGN_LEFT, 0, 0}, {"what", NULL, ND_ALIGN_LEFT, 0, 0},
        {"pass", NULL, ND_ALIGN_LEFT, 0, 0},      {"layer", NULL, ND_ALIGN_RIGHT, 0, 0},
        {"micro", NULL, ND_ALIGN_RIGHT, 0, 0},    {"shape", NULL, ND_ALIGN_LEFT, 0, 0},
        {"group", NULL, ND_ALIGN_LEFT, 0, 0},     {"reads", NULL, ND_ALIGN_LEFT, 0, 0},
        {"writes", NULL, ND_ALIGN_LEFT, 0, 0},
    };
    /* a listing, not prose: as wide as its cells, which a program may cut */
    static const nd_report_style wide = {.width = 400};
    nd_table *table = nd_table_create(columns, (int32_t)(sizeof columns / sizeof columns[0]));
    if (table == NULL) {
        return nd_fail(err, ND_ENOMEM, "out of memory");
    }
    int32_t left = lines;
    for (int32_t i = 0; i < program->ins_count && left > 0; i++) {
        if (is_shown(&program->ins[i])) {
            add_ins(table, &program->ins[i], i);
            left--;
        }
    }
    nd_status status = nd_table_print(table, stream, &wide, 0, err);
    nd_table_free(table);
    return status;
}

static void print_memory(FILE *stream, const nd_report_style *style, const nd_program *program)
{
    nd_replay replay = nd_program_replay(program);
    nd_report_heading(stream, style, "Memory at the peak, bytes");
    for (int c = 0; c < ND_MEMORY_CLASS_COUNT; c++) {
        fprintf(stream, "  %-12s %16s\n", nd_memory_class_name((nd_memory_class)c),
                nd_format_count(replay.at_peak_bytes[c]).text);
    }
    fprintf(stream, "  %-12s %16s\n", "together", nd_format_count(replay.peak_bytes).text);
    if (replay.peak_ins >= 0) {
        nd_report_paragraph(stream, style, 2, 2, "Reached at #%" PRId32 " (%s); the buffers span %s bytes.",
                            replay.peak_ins, program->ins[replay.peak_ins].tag,
                            nd_format_count(replay.arena_bytes).text);
    }
}

static void print_traffic(FILE *stream, const nd_report_style *style, const nd_program *program, int64_t kv_heads)
{
    nd_traffic traffic = {0};
    nd_program_traffic(program, kv_heads, &traffic);
    nd_report_heading(stream, style, "Communication of this rank in a step");
    bool any = false;
    for (int g = 0; g < ND_MEMBERS_COUNT; g++) {
        for (int op = 0; op < ND_INS_COUNT; op++) {
            const nd_traffic_count *count = &traffic.count[g][op];
            if (count->calls > 0) {
                fprintf(stream, "  %-12s %-16s %10s call%-1s %18s bytes\n", nd_members_name((nd_members_kind)g),
                        nd_ins_name((nd_ins_op)op), nd_format_count(count->calls).text, nd_text_plural(count->calls),
                        nd_format_count(count->bytes).text);
                any = true;
            }
        }
    }
    if (!any) {
        fputs("  none: it is alone\n", stream);
    }
}

nd_status nd_report_program(FILE *stream, const nd_report_style *style, const nd_program *program, int64_t kv_heads,
                            int32_t lines, nd_error *err)
{
    int32_t count = shown_count(program);
    nd_report_paragraph(stream, style, 0, 2,
                        "Program of rank %" PRId64 " of %s: %s instructions and %s buffers a step, computing in %s.",
                        program->rank, nd_format_count(nd_layout_ranks(&program->layout)).text,
                        nd_format_count(count).text, nd_format_count(program->buffers_count - 1).text,
                        nd_elem_name(program->options.real));
    print_memory(stream, style, program);
    print_traffic(stream, style, program, kv_heads);
    nd_report_heading(stream, style, "Instructions");
    ND_TRY(print_instructions(stream, program, lines, err));
    if (count > lines) {
        nd_report_paragraph(stream, style, 2, 2, "and %s more: -v shows them all",
                            nd_format_count((int64_t)count - lines).text);
    }
    return ND_OK;
}
