#include "program/instruction.h"

#include <assert.h>

static const char *const op_names[ND_INS_COUNT] = {
#define ND_INS_NAME(name, text) [name] = (text),
    ND_INS_LIST(ND_INS_NAME)
#undef ND_INS_NAME
};

static const char *const stream_names[ND_STREAM_COUNT] = {
    [ND_STREAM_COMPUTE] = "compute", [ND_STREAM_GATHER] = "gather", [ND_STREAM_REDUCE] = "reduce",
    [ND_STREAM_RING] = "ring",       [ND_STREAM_SEND] = "send",     [ND_STREAM_RECV] = "recv",
};

static const char *const class_names[ND_MEMORY_CLASS_COUNT] = {
#define ND_MEMORY_NAME(name, text) [name] = (text),
    ND_MEMORY_CLASS_LIST(ND_MEMORY_NAME)
#undef ND_MEMORY_NAME
};

static const struct {
    const char *name;
    int64_t bytes;
} elems[ND_ELEM_COUNT] = {
    [ND_ELEM_F64] = {"fp64", 8},
    [ND_ELEM_F32] = {"fp32", 4},
    [ND_ELEM_BF16] = {"bf16", 2},
    [ND_ELEM_I32] = {"int32", 4},
};

const char *nd_ins_name(nd_ins_op op)
{
    assert(op < ND_INS_COUNT);
    return op_names[op];
}

const char *nd_stream_name(nd_stream stream)
{
    assert(stream < ND_STREAM_COUNT);
    return stream_names[stream];
}

const char *nd_memory_class_name(nd_memory_class memory_class)
{
    assert(memory_class < ND_MEMORY_CLASS_COUNT);
    return class_names[memory_class];
}

const char *nd_elem_name(nd_elem elem)
{
    assert(elem < ND_ELEM_COUNT);
    return elems[elem].name;
}

int64_t nd_elem_bytes(nd_elem elem)
{
    assert(elem < ND_ELEM_COUNT);
    return elems[elem].bytes;
}

bool nd_ins_communicates(nd_ins_op op)
{
    return op >= ND_INS_ALL_REDUCE && op < ND_INS_COUNT;
}

/* Entry `index` of member `member`'s own piece. */
static int64_t piece_position(const nd_seq_map *map, int64_t member, int64_t index)
{
    int64_t piece = map->seq_len / map->cp;
    if (!map->zigzag) {
        return member * piece + index;
    }
    int64_t chunk = piece / 2;
    return index < chunk ? member * chunk + index : (2 * map->cp - 1 - member) * chunk + (index - chunk);
}

int64_t nd_seq_map_position(const nd_seq_map *map, int64_t index)
{
    int64_t piece = map->seq_len / map->cp;
    index += map->first;
    if (map->member >= 0) {
        return piece_position(map, map->member, index);
    }
    return piece_position(map, index / piece, index % piece);
}
