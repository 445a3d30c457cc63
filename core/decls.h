/** Linkage and attribute macros shared by every header. */
#ifndef ND_CORE_DECLS_H
#define ND_CORE_DECLS_H

#ifdef __cplusplus
#define ND_BEGIN_DECLS extern "C" {
#define ND_END_DECLS   }
#else
#define ND_BEGIN_DECLS
#define ND_END_DECLS
#endif

/* The only place for compiler extensions: a status that nobody looks at, and printf-like formats. */
#if defined(__GNUC__)
#define ND_NODISCARD                         __attribute__((warn_unused_result))
#define ND_PRINTF(format_index, first_index) __attribute__((format(printf, format_index, first_index)))
#else
#define ND_NODISCARD
#define ND_PRINTF(format_index, first_index)
#endif

#endif
