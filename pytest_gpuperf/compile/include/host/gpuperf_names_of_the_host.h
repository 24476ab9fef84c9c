// What nvcc declares without any #include, and constants that are copied along without theirs.
#include <float.h>
#include <limits.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
