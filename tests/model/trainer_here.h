// NEEDS_TRAINER(): skips a test, saying why, where networks cannot be trained.
#pragma once

#include <gtest/gtest.h>

#include "model/checkpoints.h"
#include "model/nn/trainer.h"

#define NEEDS_TRAINER()                                                                         \
  if (const auto plugin = ::pruner::make_torch_trainer(random_weights(::pruner::kPacm, 1), {}); \
      !plugin.ok())                                                                             \
  GTEST_SKIP() << plugin.error().message()
