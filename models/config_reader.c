/* A config.json: which family it is of, and what no reader may ignore. */
#include <string.h>

#include "models/reader_internal.h"

typedef struct model_family {
    const char *model_type;
    nd_status (*read)(nd_model_reader *r);
    bool nested; /* the text model may be in text_config */
} model_family;

static const model_family families[] = {
    {"deepseek_v2", nd_read_deepseek_v2, false},
    {"deepseek_v3", nd_read_deepseek_v3, false},
    {"falcon", nd_read_falcon, false},
    {"gemma2", nd_read_gemma2, false},
    {"gemma3", nd_read_gemma3, true},
    {"gemma3_text", nd_read_gemma3, false},
    {"gpt2", nd_read_gpt2, false},
    {"gpt_neox", nd_read_gpt_neox, false},
    {"gpt_oss", nd_read_gpt_oss, false},
    {"granite", nd_read_granite, false},
    {"llama", nd_read_llama, false},
    {"llama4", nd_read_llama4, true},
    {"llama4_text", nd_read_llama4, false},
    {"mistral", nd_read_mistral, false},
    {"mixtral", nd_read_mixtral, false},
    {"olmo2", nd_read_olmo2, false},
    {"olmo3", nd_read_olmo3, false},
    {"opt", nd_read_opt, false},
    {"phi3", nd_read_phi3, false},
    {"qwen2", nd_read_qwen2, false},
    {"qwen2_moe", nd_read_qwen2_moe, false},
    {"qwen3", nd_read_qwen3, false},
    {"qwen3_moe", nd_read_qwen3_moe, false},
    {"smollm3", nd_read_smollm3, false},
};
enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

static const model_family llama_assumed = {"llama", nd_read_llama, false};

static const model_family *find_family(const char *model_type)
{
    for (size_t i = 0; i < FAMILY_COUNT; i++) {
        if (strcmp(families[i].model_type, model_type) == 0) {
            return &families[i];
        }
    }
    return NULL;
}

/* Text from a config goes into reports: no control bytes, and no character cut in half at the end. */
static void copy_text(char *out, size_t out_bytes, const char *text)
{
    size_t length = strlen(text);
    if (length >= out_bytes) {
        length = out_bytes - 1;
        while (length > 0 && ((unsigned char)text[length] & 0xC0) == 0x80) {
            length--;
        }
    }
    memcpy(out, text, length);
    out[length] = '\0';
    for (char *c = out; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}

static bool find_text_config(nd_json root, nd_json *out)
{
    static const char *const keys[] = {"text_config", "llm_config", "language_config"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (nd_json_find(root, keys[i], out) && nd_json_typeof(*out) == ND_JSON_OBJECT) {
            return true;
        }
    }
    return false;
}

/* Files that lie beside models and are given by mistake. */
static nd_status check_is_model(nd_json root, nd_error *err)
{
    nd_json value;
    const char *base = NULL;
    if (nd_json_typeof(root) != ND_JSON_OBJECT) {
        return nd_json_fail(root, err, "a model config is a JSON object, got %s",
                            nd_json_type_name(nd_json_typeof(root)));
    }
    if (nd_json_find(root, "peft_type", &value)) {
        if (nd_json_find(root, "base_model_name_or_path", &value) && nd_json_typeof(value) == ND_JSON_STRING) {
            ND_TRY(nd_json_as_string(value, "base_model_name_or_path", &base, err));
        }
        return nd_json_fail(root, err, "this is a LoRA adapter, not a model; plan its base model%s%.80s",
                            base != NULL ? ": " : "", base != NULL ? base : "");
    }
    if (nd_json_find(root, "_class_name", &value) && !nd_json_find(root, "model_type", &value)) {
        return nd_json_fail(root, err,
                            "this is a diffusers pipeline or module, not a language model; give the config.json of a "
                            "decoder-only transformer");
    }
    return ND_OK;
}

static nd_status fail_unknown_type(nd_json value, const char *model_type, nd_error *err)
{
    char list[ND_ERROR_MESSAGE_MAX / 2];
    size_t used = 0;
    for (size_t i = 0; i < FAMILY_COUNT && used < sizeof list; i++) {
        used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", families[i].model_type);
    }
    (void)nd_json_fail(value, err,
                       "model_type '%.40s' is not supported; supported are %s; --assume-llama would read hidden_size, "
                       "num_hidden_layers, num_attention_heads, num_key_value_heads, intermediate_size and vocab_size "
                       "as in Llama (gated feed-forward, RMSNorm, full attention, no experts)",
                       model_type, list);
    return nd_reader_unsupported(err);
}

/* An assumption must not hide experts or an encoder: the counts would be wrong by a factor. */
static nd_status check_assumable(nd_json object, nd_error *err)
{
    static const char *const keys[] = {"num_experts",  "num_local_experts", "n_routed_experts", "moe_intermediate_size",
                                       "kv_lora_rank", "encoder_layers",    "state_size",       "ssm_cfg"};
    nd_json value;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        if (nd_json_find(object, keys[i], &value) && nd_json_typeof(value) != ND_JSON_NULL) {
            (void)nd_json_fail(value, err, "'%s' is nothing that Llama has, so --assume-llama cannot read this model",
                               keys[i]);
            return nd_reader_unsupported(err);
        }
    }
    if (nd_json_find(object, "is_encoder_decoder", &value) && nd_json_typeof(value) == ND_JSON_BOOL) {
        bool encoder_decoder = false;
        ND_TRY(nd_json_as_bool(value, "is_encoder_decoder", &encoder_decoder, err));
        if (encoder_decoder) {
            (void)nd_json_fail(value, err, "an encoder-decoder model cannot be read as Llama");
            return nd_reader_unsupported(err);
        }
    }
    return ND_OK;
}

static nd_status fail_no_text_config(const nd_model_reader *r)
{
    nd_json value;
    ND_TRY(nd_json_need(r->object, "text_config", &value, r->err));
    return nd_json_fail(value, r->err, "'text_config' must be an object, got %s",
                        nd_json_type_name(nd_json_typeof(value)));
}

/* Moves r->object to the text model when there is one inside; *family is NULL when we know none. */
static nd_status choose_family(nd_model_reader *r, const char *model_type, const model_family **family)
{
    nd_json inner;
    nd_json inner_type;
    *family = find_family(model_type);
    if (*family != NULL && !(*family)->nested) {
        return ND_OK;
    }
    if (!find_text_config(r->object, &inner)) {
        return *family != NULL ? fail_no_text_config(r) : ND_OK;
    }
    const model_family *found = *family;
    if (nd_json_find(inner, "model_type", &inner_type)) {
        const char *text = NULL;
        ND_TRY(nd_json_as_string(inner_type, "model_type", &text, r->err));
        found = find_family(text);
        if (found == NULL && *family != NULL) {
            return fail_unknown_type(inner_type, text, r->err);
        }
    }
    if (found != NULL) {
        nd_reader_note(r->spec, "text model only: what else '%.24s' has (vision, audio) is not counted", model_type);
        r->object = inner;
    }
    *family = found;
    return ND_OK;
}

static nd_status read_family(nd_model_reader *r, bool assume_llama)
{
    nd_json value;
    const char *model_type = "";
    const model_family *family = NULL;
    bool typed = nd_json_find(r->object, "model_type", &value);
    if (!typed && !assume_llama) {
        return nd_json_fail(r->object, r->err,
                            "there is no 'model_type': this is not the config.json of a Hugging Face model (or give "
                            "--assume-llama)");
    }
    if (typed) {
        ND_TRY(nd_json_as_string(value, "model_type", &model_type, r->err));
        ND_TRY(choose_family(r, model_type, &family));
    }
    if (family == NULL && !assume_llama) {
        return fail_unknown_type(value, model_type, r->err);
    }
    if (family == NULL) {
        ND_TRY(check_assumable(r->object, r->err));
        nd_reader_note(r->spec, "model_type '%.24s' read as llama (--assume-llama)", model_type);
        family = &llama_assumed;
    }
    copy_text(r->spec->family, sizeof r->spec->family, family->model_type);
    return family->read(r);
}

static void note_quantization(nd_model_reader *r)
{
    nd_json config;
    nd_json method;
    const char *text = NULL;
    if (!nd_json_find(r->outer, "quantization_config", &config) &&
        !nd_json_find(r->object, "quantization_config", &config)) {
        return;
    }
    if (nd_json_typeof(config) == ND_JSON_NULL) {
        return;
    }
    if (nd_json_find(config, "quant_method", &method) && nd_json_typeof(method) == ND_JSON_STRING &&
        nd_json_as_string(method, "quant_method", &text, NULL) == ND_OK) {
        nd_reader_note(r->spec, "quantized checkpoint (%.16s): planned as unquantized, train from its bf16 weights",
                       text);
    } else {
        nd_reader_note(r->spec, "quantized checkpoint: planned as unquantized, train from its bf16 weights");
    }
}

static nd_status read_name(nd_model_reader *r, const char *origin)
{
    nd_json value;
    const char *name = origin;
    if (nd_json_find(r->outer, "_name_or_path", &value) && nd_json_typeof(value) == ND_JSON_STRING) {
        ND_TRY(nd_json_as_string(value, "_name_or_path", &name, r->err));
    }
    copy_text(r->spec->name, sizeof r->spec->name, name[0] != '\0' ? name : origin);
    return ND_OK;
}

static nd_status read_config(nd_model_reader *r, const char *origin, bool assume_llama)
{
    nd_error inner = {0};
    ND_TRY(check_is_model(r->object, r->err));
    ND_TRY(read_name(r, origin));
    ND_TRY(read_family(r, assume_llama));
    note_quantization(r);
    ND_TRY(nd_reader_finish(r));
    if (nd_model_check(r->spec, &inner) != ND_OK) {
        return nd_json_fail(r->object, r->err, "%s", inner.message);
    }
    return ND_OK;
}

nd_status nd_reader_document(const nd_json_doc *doc, const char *origin, bool assume_llama, nd_model_spec *out,
                             nd_error *err)
{
    nd_model_spec spec = {0};
    nd_model_reader reader = {.spec = &spec, .err = err};
    reader.object = nd_json_root(doc);
    reader.outer = reader.object;
    ND_TRY(read_config(&reader, origin, assume_llama));
    *out = spec;
    return ND_OK;
}

nd_status nd_model_parse(const char *text, size_t length, const char *origin, bool assume_llama, nd_model_spec *out,
                         nd_error *err)
{
    nd_json_doc *doc = NULL;
    ND_TRY(nd_json_parse(text, length, origin, &doc, err));
    nd_status status = nd_reader_document(doc, origin, assume_llama, out, err);
    nd_json_free(doc);
    return status;
}
