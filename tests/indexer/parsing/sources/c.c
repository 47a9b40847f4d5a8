#include <stdio.h>
#include "my/lib.h"
#ifndef GUARD
#define GUARD
#endif
#define MAX 10
#define SQ(x) ((x)*(x))

/* A point.
 * In space. */
struct point { int x; };
typedef struct { int y; } anon_t;
typedef struct node { int y; } node_t;
typedef int (*callback)(int);
enum color { RED };

static int
add(int a, int b)
{
    return mul(a, b) + p->fn(a);
}
char *name(void) { return s.get(1); }
static const int limit = 3;
int proto(int a);
