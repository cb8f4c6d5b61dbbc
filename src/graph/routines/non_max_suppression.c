/* NonMaxSuppression: of each class the boxes with the best scores, without those that overlap a
   better one. */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  double low[2], high[2];
} Box;

static Box box_at(const PrunerNms* p, const void* boxes, int64_t i) {
  double v[4];
  for (int c = 0; c < 4; c++) v[c] = pruner_get_real(boxes, p->dtype, i * 4 + c);
  Box box;
  for (int d = 0; d < 2; d++) {
    /* Two corners in any order, or the centre and the extents. */
    const double a = p->by_centre ? v[d] - v[d + 2] / 2 : v[d];
    const double b = p->by_centre ? v[d] + v[d + 2] / 2 : v[d + 2];
    box.low[d] = a < b ? a : b;
    box.high[d] = a < b ? b : a;
  }
  return box;
}

/* Boxes that were chosen, coordinate by coordinate. */
typedef struct {
  double *low[2], *high[2], *area;
} Chosen;

static double area_of(Box a) { return (a.high[0] - a.low[0]) * (a.high[1] - a.low[1]); }

/* Whether the common area of a box and one of some others is more than a share of that of both. */
static int overlaps(Box a, const Chosen* others, int64_t from, int64_t to, double most) {
  const double area = area_of(a);
  int does = 0;
  for (int64_t i = from; i < to; i++) {
    double extent[2];
    for (int d = 0; d < 2; d++) {
      const double low = a.low[d] > others->low[d][i] ? a.low[d] : others->low[d][i];
      const double high = a.high[d] < others->high[d][i] ? a.high[d] : others->high[d][i];
      extent[d] = high > low ? high - low : 0;
    }
    const double common = extent[0] * extent[1];
    does |= (common > 0) & (common > most * (area + others->area[i] - common));
  }
  return does;
}

/* The same of all, some at a time. */
static int overlaps_any(Box a, const Chosen* chosen, int64_t count, double most) {
  enum { kAtOnce = 64 };
  for (int64_t from = 0; from < count; from += kAtOnce)
    if (overlaps(a, chosen, from, from + kAtOnce < count ? from + kAtOnce : count, most)) return 1;
  return 0;
}

/* Whether a is chosen before b. */
static int is_better(PrunerRanked a, PrunerRanked b) {
  return a.key != b.key ? a.key > b.key : a.index < b.index;
}

/* Lets element `at` of a heap of n sink to its place; the best is on top. */
static void sink(PrunerRanked* heap, int64_t n, int64_t at) {
  const PrunerRanked moved = heap[at];
  for (int64_t child; (child = 2 * at + 1) < n; at = child) {
    if (child + 1 < n && is_better(heap[child + 1], heap[child])) child++;
    if (!is_better(heap[child], moved)) break;
    heap[at] = heap[child];
  }
  heap[at] = moved;
}

typedef struct {
  const PrunerNms* p;
  const void *boxes, *scores;
  double most_overlap, least_score;
} Call;

/* Chooses of one class of one image; the number of rows that `out` has then. */
static int64_t run_class(const Call* call,
                         PrunerRanked* heap,
                         const Chosen* chosen,
                         int64_t image,
                         int64_t class,
                         int64_t* out,
                         int64_t rows) {
  const PrunerNms* p = call->p;
  const int64_t scores = (image * p->classes + class) * p->boxes, start = rows;
  int64_t n = 0;
  for (int64_t i = 0; i < p->boxes; i++) {
    if (p->has_least && !(pruner_get_real(call->scores, p->dtype, scores + i) > call->least_score))
      continue;
    const uint64_t key = pruner_order_key(call->scores, p->dtype, scores + i, 1);
    heap[n++] = (PrunerRanked){key != PRUNER_KEY_OF_NAN ? key : 0, i}; /* a NaN is the worst */
  }
  for (int64_t i = n / 2; i-- > 0;) sink(heap, n, i);
  while (n > 0 && rows - start < p->most && rows < p->room) {
    const int64_t index = heap[0].index;
    heap[0] = heap[--n];
    sink(heap, n, 0);
    const Box box = box_at(p, call->boxes, image * p->boxes + index);
    const int64_t place = rows - start;
    if (overlaps_any(box, chosen, place, call->most_overlap)) continue;
    for (int d = 0; d < 2; d++) {
      chosen->low[d][place] = box.low[d];
      chosen->high[d][place] = box.high[d];
    }
    chosen->area[place] = area_of(box);
    out[3 * rows] = image;
    out[3 * rows + 1] = class;
    out[3 * rows++ + 2] = index;
  }
  return rows;
}

void pruner_non_max_suppression(void* const* args, void* workspace, PrunerPool* pool) {
  (void)pool;
  const PrunerNms* p = args[2];
  Call call = {p, args[0], args[1], 0, 0};
  call.most_overlap = pruner_double_of(p->overlap_bits);
  call.least_score = pruner_double_of(p->least_bits);
  int64_t *out = args[3], rows = 0;
  PrunerRanked* heap = workspace;
  double* numbers = (double*)(heap + p->boxes);
  const Chosen chosen = {{numbers, numbers + p->boxes},
                         {numbers + 2 * p->boxes, numbers + 3 * p->boxes},
                         numbers + 4 * p->boxes};
  for (int64_t image = 0; image < p->images; image++) {
    for (int64_t class = 0; class < p->classes; class ++)
      rows = run_class(&call, heap, &chosen, image, class, out, rows);
  }
  for (int64_t i = 3 * rows; i < 3 * p->room; i++) out[i] = -1;
}
