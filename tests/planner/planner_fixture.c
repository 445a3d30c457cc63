#include "tests/planner/planner_fixture.h"

#include <string.h>

#include "tests/nd_test.h"

const char fixture_dense[] =
    "{\"model_type\": \"llama\", \"hidden_size\": 512, \"num_hidden_layers\": 12, \"num_attention_heads\": 8,"
    " \"num_key_value_heads\": 4, \"intermediate_size\": 1536, \"vocab_size\": 32000, \"tie_word_embeddings\": false,"
    " \"max_position_embeddings\": 8192}";

const char fixture_moe[] =
    "{\"model_type\": \"mixtral\", \"hidden_size\": 512, \"num_hidden_layers\": 4, \"num_attention_heads\": 8,"
    " \"num_key_value_heads\": 4, \"intermediate_size\": 1536, \"vocab_size\": 32000, \"num_local_experts\": 8,"
    " \"num_experts_per_tok\": 2, \"tie_word_embeddings\": false, \"max_position_embeddings\": 8192}";

void fixture_refresh(planner_fixture *f)
{
    nd_error err;
    ND_ASSERT_OK(
        nd_cost_context_init(&f->model, &f->cluster, &f->train, &f->stack, &f->calibration, &f->context, &err));
}

void fixture_init(planner_fixture *f, const char *model, const char *cluster, const char *stack, int64_t seq_len_tokens,
                  int64_t global_batch_seqs)
{
    nd_error err;
    nd_status loaded = model[0] == '{' ? nd_model_parse(model, strlen(model), "tiny", false, &f->model, &err)
                                       : nd_model_load(model, false, &f->model, &err);
    if (!nd_test_ok(loaded, &err, __FILE__, __LINE__) ||
        !nd_test_ok(nd_cluster_load(cluster, &f->cluster, &err), &err, __FILE__, __LINE__) ||
        !nd_test_ok(nd_stack_find(stack, &f->stack, &err), &err, __FILE__, __LINE__) ||
        !nd_test_ok(nd_calibration_for_gpu(&f->cluster.gpu, &f->calibration, &err), &err, __FILE__, __LINE__)) {
        CU_FAIL_FATAL("the fixture does not load");
    }
    f->train = (nd_train_spec){
        .seq_len_tokens = seq_len_tokens,
        .global_batch_seqs = global_batch_seqs,
        .precision = ND_DTYPE_BF16,
        .optimizer = ND_OPTIMIZER_ADAMW,
        .attention = ND_ATTENTION_FLASH2,
        .base_bits = 16,
    };
    fixture_refresh(f);
}
