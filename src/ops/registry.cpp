#include "ops/registry.h"

#include "ir/op_kind.h"
#include "ir/text.h"
#include "ops/attention.h"
#include "ops/cache.h"
#include "ops/elementwise.h"
#include "ops/matmul.h"
#include "ops/move.h"
#include "ops/norm.h"
#include "ops/reduce.h"
#include "ops/view.h"

namespace rlx {

#define RLX_OP(Struct) template const OpKind& op_kind<Struct>();
#include "ops/ops.def"
#undef RLX_OP

const OpRegistry& all_ops() {
  static const OpRegistry registry({
#define RLX_OP(Struct) &op_kind<Struct>(),
#include "ops/ops.def"
#undef RLX_OP
  });
  return registry;
}

Graph parse_graph(std::string_view text) { return parse_graph(text, all_ops()); }

}  // namespace rlx
