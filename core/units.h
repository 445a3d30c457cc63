/** Factors between base units and what people read. Convert only where text is printed or parsed. */
#ifndef ND_CORE_UNITS_H
#define ND_CORE_UNITS_H

#define ND_KIB   1024.0
#define ND_MIB   (1024.0 * ND_KIB)
#define ND_GIB   (1024.0 * ND_MIB)
#define ND_GIGA  1e9
#define ND_TERA  1e12
#define ND_MICRO 1e-6
#define ND_MILLI 1e-3

#endif
