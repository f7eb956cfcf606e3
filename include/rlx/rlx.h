// Everything of the installed API.
#pragma once

#include "rlx/budget.h"
#include "rlx/chat.h"
#include "rlx/dtype.h"
#include "rlx/embedding_model.h"
#include "rlx/error.h"
#include "rlx/graph_builder.h"
#include "rlx/language_model.h"
#include "rlx/plan.h"
#include "rlx/version.h"
