/* "ndplan/why/1" */
#include "reports/json_report_internal.h"
#include "reports/terms.h"
#include "reports/why_report.h"

static void put_plan(nd_json_writer *json, const char *key, bool present, const nd_layout *layout,
                     const nd_estimate *estimate)
{
    nd_json_key(json, key);
    if (!present) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_layout(json, layout);
    nd_json_put_estimate(json, estimate);
    nd_json_end_object(json);
}

static void put_rules(nd_json_writer *json, const nd_why *why)
{
    const nd_repair *repair = &why->repair;
    nd_json_key(json, "rules");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < repair->count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "rule", repair->steps[i].refusal.rule);
        nd_json_put_string(json, "message", repair->steps[i].refusal.message);
        nd_json_put_string(json, "nearest", repair->steps[i].refusal.nearest);
        nd_json_put_string(json, "change", repair->steps[i].change);
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    bool found = repair->count > 0 && repair->found;
    put_plan(json, "nearest_legal", found || why->has_legal, found ? &repair->layout : &why->legal.layout,
             found ? &repair->estimate : &why->legal.estimate);
}

static void put_smallest(nd_json_writer *json, const char *key, bool present, const nd_fix *fix)
{
    nd_json_key(json, key);
    if (present) {
        nd_json_put_fix(json, fix);
    } else {
        nd_json_null(json);
    }
}

static void put_remedies(nd_json_writer *json, const nd_report_context *context, const nd_why *why)
{
    nd_fix fixes[ND_FIXES_MAX];
    bool legal = why->answer != ND_WHY_ILLEGAL;
    int32_t count = legal ? nd_fixes_find(context->cost, context->framework, &why->layout, NULL, fixes) : 0;
    put_smallest(json, "smallest_change_likely", why->has_likely, &why->likely);
    put_smallest(json, "smallest_change_sure", why->has_sure, &why->sure);
    put_plan(json, "search_fit", why->has_search_fit, &why->search_fit.layout, &why->search_fit.estimate);
    nd_json_key(json, "changes");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < count; i++) {
        nd_json_put_fix(json, &fixes[i]);
    }
    nd_json_end_array(json);
}

static void put_division_terms(nd_json_writer *json, const nd_memory_breakdown *memory)
{
    for (const nd_term *term = nd_memory_terms; term->key != NULL; term++) {
        nd_json_put_double(json, term->key, nd_memory_term(memory, term));
    }
    nd_json_put_double(json, "peak_bytes", memory->peak_bytes);
}

/* The terms now, and with each degree doubled. */
static void put_divisions(nd_json_writer *json, const nd_divisions *divisions)
{
    nd_json_key(json, "divisions");
    nd_json_begin_object(json);
    nd_json_put_string(json, "phase", nd_phase_name(divisions->memory.phase));
    nd_json_key(json, "now");
    nd_json_begin_object(json);
    put_division_terms(json, &divisions->memory);
    nd_json_end_object(json);
    nd_json_key(json, "doubled");
    nd_json_begin_array(json);
    for (int axis = 0; axis < ND_DIVISION_AXES; axis++) {
        const nd_division *division = &divisions->axis[axis];
        nd_json_begin_object(json);
        nd_json_put_string(json, "axis", division->axis);
        nd_json_put_bool(json, "legal", division->rule == NULL);
        if (division->rule != NULL) {
            nd_json_put_string(json, "rule", division->rule);
        } else {
            put_division_terms(json, &division->memory);
        }
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_end_object(json);
}

static void put_place(nd_json_writer *json, const nd_why_place *place)
{
    nd_json_key(json, "place");
    if (place->rank == 0) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_int(json, "rank", place->rank);
    nd_json_put_int(json, "meshes", place->meshes);
    nd_json_put_bool(json, "at_least", place->at_least);
    nd_json_put_int(json, "searched", place->searched);
    nd_json_put_int(json, "fitting", place->fitting);
    put_plan(json, "best_of_mesh", place->has_variant, &place->variant.layout, &place->variant.estimate);
    nd_json_end_object(json);
}

static void put_side(nd_json_writer *json, const char *key, const nd_comparison_side *side)
{
    nd_json_key(json, key);
    nd_json_begin_object(json);
    nd_json_put_bool(json, "asked", side->was_asked);
    nd_json_put_layout(json, &side->layout);
    nd_json_put_estimate(json, &side->estimate);
    nd_json_end_object(json);
}

/* The collective behind an exposed term of the slower layout. */
static void put_collective(nd_json_writer *json, const nd_comm_line *line)
{
    nd_json_key(json, "collective");
    if (line == NULL) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    nd_json_put_string(json, "name", line->name);
    nd_json_put_string(json, "link", line->link);
    nd_json_put_int(json, "ranks", line->group.ranks);
    nd_json_put_double(json, "bytes", line->bytes);
    nd_json_put_double(json, "calls_per_step", line->calls_per_step);
    nd_json_put_double(json, "exposed_s", line->exposed_s);
    nd_json_put_double(json, "needed_bytes_per_s", line->needed_bytes_per_s);
    nd_json_end_object(json);
}

static void put_comparison(nd_json_writer *json, const nd_why *why)
{
    const nd_comparison *c = &why->comparison;
    nd_json_key(json, "comparison");
    if (!why->has_comparison) {
        nd_json_null(json);
        return;
    }
    nd_json_begin_object(json);
    put_side(json, "slower", &c->slower);
    put_side(json, "faster", &c->faster);
    nd_json_put_double(json, "batch_factor", c->batch_factor);
    nd_json_put_double(json, "slower_step_s", c->slower.step_s);
    nd_json_put_double(json, "faster_step_s", c->faster.step_s);
    nd_json_put_double(json, "lost_s", c->lost_s);
    nd_json_put_bool(json, "within_uncertainty", c->within_uncertainty);
    nd_json_put_int(json, "explaining", c->explaining);
    nd_json_key(json, "terms");
    nd_json_begin_array(json);
    for (int32_t i = 0; i < c->count; i++) {
        nd_json_begin_object(json);
        nd_json_put_string(json, "term", c->terms[i].key);
        nd_json_put_double(json, "slower_s", c->terms[i].slower_s);
        nd_json_put_double(json, "faster_s", c->terms[i].faster_s);
        nd_json_put_double(json, "lost_s", c->terms[i].lost_s);
        nd_json_put_double(json, "factor_frac", c->terms[i].factor_frac);
        put_collective(json, nd_comm_largest_of(&c->slower.comm, c->terms[i].key));
        nd_json_end_object(json);
    }
    nd_json_end_array(json);
    nd_json_end_object(json);
}

void nd_json_why(FILE *stream, const nd_report_context *context, const nd_why *why)
{
    char sentence[ND_WHY_SENTENCE_MAX];
    bool legal = why->answer != ND_WHY_ILLEGAL;
    nd_why_sentence(why, sentence);
    nd_json_writer json = nd_json_writer_start(stream);
    nd_json_begin_object(&json);
    nd_json_put_head(&json, context, "ndplan/why/1");
    nd_json_put_string(&json, "answer", nd_why_answer_name(why->answer));
    nd_json_put_string(&json, "sentence", sentence);
    nd_json_put_bool(&json, "legal", legal);
    nd_json_put_layout(&json, &why->layout);
    put_rules(&json, why);
    if (legal) {
        nd_json_put_estimate(&json, &why->estimate);
        put_divisions(&json, &why->divisions);
    }
    nd_json_put_double(&json, "host_memory_bytes", why->host_memory_bytes);
    put_remedies(&json, context, why);
    put_place(&json, &why->place);
    put_comparison(&json, why);
    nd_json_end_object(&json);
    nd_json_writer_finish(&json);
}
