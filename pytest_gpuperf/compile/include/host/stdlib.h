#ifndef GPUPERF_STDLIB
#define GPUPERF_STDLIB
#include <cstddef>
typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned long ulong;
#endif
