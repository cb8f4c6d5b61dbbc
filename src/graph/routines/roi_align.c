/* RoiAlign (He et al., "Mask R-CNN", 2017): a region's bins, each the mean or the greatest of
   samples between four elements. */
#include <string.h>

#include "graph/routines/elements.h"

typedef struct {
  const PrunerRoiAlign* p;
  const void *data, *regions;
  const int64_t* images;
  void* out;
  double scale;
} Call;

/* The elements around a sample and what each counts; none of one that lies outside. */
typedef struct {
  int64_t at[4];
  double weight[4];
} Sample;

static double element(const Call* call, int64_t i) {
  return call->p->dtype == PRUNER_FLOAT32 ? ((const float*)call->data)[i]
                                          : pruner_get_real(call->data, call->p->dtype, i);
}

/* A place's lower neighbour and how far it lies behind that. Places up to one element outside
   count as those at the border. */
static int64_t split(double* place, int64_t extent) {
  const double x = *place > 0 ? *place : 0;
  int64_t low = (int64_t)x;
  if (low >= extent - 1) low = extent - 1;
  *place = low == extent - 1 ? 0 : x - (double)low;
  return low;
}

static Sample sample_at(const PrunerRoiAlign* p, double y, double x) {
  Sample s = {{0}, {0}};
  if (!(y >= -1 && y <= (double)p->height && x >= -1 && x <= (double)p->width)) return s;
  const int64_t row = split(&y, p->height), column = split(&x, p->width);
  for (int i = 0; i < 4; i++) {
    const int64_t down = i / 2, right = i % 2;
    s.weight[i] = (down ? y : 1 - y) * (right ? x : 1 - x);
    const int64_t r = row + down < p->height ? row + down : row;
    const int64_t c = column + right < p->width ? column + right : column;
    s.at[i] = r * p->width + c;
  }
  return s;
}

static int64_t rounded_up(double x) {
  const int64_t whole = (int64_t)x;
  return whole + ((double)whole < x);
}

enum { kSamples = 64 }; /* that are worked out at a time, for all channels */

/* What some samples of a bin, from number `from` on, make of a channel that had `result`. */
static double add_samples(const Call* call,
                          int64_t plane,
                          const Sample* samples,
                          int64_t from,
                          int64_t to,
                          int64_t count,
                          double result) {
  for (int64_t i = from; i < to; i++) {
    const Sample* s = &samples[i - from];
    double sum = 0, most = 0;
    for (int n = 0; n < 4; n++) {
      const double part = s->weight[n] * element(call, plane + s->at[n]);
      sum += part;
      most = n == 0 || part > most ? part : most;
    }
    if (!call->p->takes_greatest) result += sum / (double)count;
    if (call->p->takes_greatest) result = i == 0 || most > result ? most : result;
  }
  return result;
}

/* One bin of all channels. */
static void run_bin(
    const Call* call, int64_t roi, const double* start, const double* size, int64_t bin) {
  const PrunerRoiAlign* p = call->p;
  const int64_t area = p->height * p->width, bins = p->rows * p->columns;
  const int64_t image = call->images[roi];
  const int64_t down = p->samples > 0 ? p->samples : rounded_up(size[0]);
  const int64_t right = p->samples > 0 ? p->samples : rounded_up(size[1]);
  const int64_t all = image >= 0 && image < p->images ? down * right : 0;
  const int64_t count = down * right > 1 ? down * right : 1;
  const int64_t first = roi * p->channels * bins + bin;
  for (int64_t from = 0; from == 0 || from < all; from += kSamples) {
    const int64_t to = from + kSamples < all ? from + kSamples : all;
    Sample samples[kSamples];
    for (int64_t i = from; i < to; i++) {
      const double in_row = ((double)(i / right) + 0.5) / (double)down;
      const double in_column = ((double)(i % right) + 0.5) / (double)right;
      samples[i - from] = sample_at(p,
                                    start[0] + ((double)(bin / p->columns) + in_row) * size[0],
                                    start[1] + ((double)(bin % p->columns) + in_column) * size[1]);
    }
    for (int64_t c = 0; c < p->channels; c++) {
      const int64_t out = first + c * bins;
      const double before = from == 0 ? 0 : pruner_get_real(call->out, p->dtype, out);
      const int64_t plane = (image * p->channels + c) * area;
      pruner_set_real(
          call->out, p->dtype, out, add_samples(call, plane, samples, from, to, count, before));
    }
  }
}

static void run_rois(void* closure, int64_t begin, int64_t end) {
  const Call* call = closure;
  const PrunerRoiAlign* p = call->p;
  const double offset = p->half_pixel ? 0.5 : 0;
  for (int64_t roi = begin; roi < end; roi++) {
    double corner[4], start[2], size[2];
    for (int i = 0; i < 4; i++) /* x, y, x, y */
      corner[i] = pruner_get_real(call->regions, p->dtype, roi * 4 + i) * call->scale - offset;
    for (int d = 0; d < 2; d++) { /* rows, columns */
      double extent = corner[3 - d] - corner[1 - d];
      if (!p->half_pixel && extent < 1) extent = 1;
      start[d] = corner[1 - d];
      size[d] = extent / (double)(d == 0 ? p->rows : p->columns);
    }
    for (int64_t bin = 0; bin < p->rows * p->columns; bin++) run_bin(call, roi, start, size, bin);
  }
}

void pruner_roi_align(void* const* args, void* workspace, PrunerPool* pool) {
  (void)workspace;
  Call call = {args[3], args[0], args[1], args[2], args[4], 0};
  memcpy(&call.scale, &call.p->scale_bits, sizeof call.scale);
  pool->parallel_for(pool, run_rois, &call, call.p->rois);
}
