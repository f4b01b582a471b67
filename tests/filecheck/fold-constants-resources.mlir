// PASSES: fold-constants
//
// The elements of a resource are not read: what is computed of it stays.

#one = affine_map<(d0) -> (d0)>

// CHECK-LABEL: func.func @main
// CHECK:         %[[BLOB:.*]] = arith.constant dense_resource<blob> : tensor<4xf32>
// CHECK:         linalg.generic {{.*}} ins(%[[BLOB]], %{{.*}} : tensor<4xf32>, tensor<4xf32>)
// CHECK-NEXT:    ^bb0
// CHECK-NEXT:      arith.divf
func.func @main() -> tensor<4xf32> {
  %resource = arith.constant dense_resource<blob> : tensor<4xf32>
  %taps = arith.constant dense<[1.0, 2.0, 3.0, 4.0]> : tensor<4xf32>
  %e = tensor.empty() : tensor<4xf32>
  %r = linalg.generic {indexing_maps = [#one, #one, #one], iterator_types = ["parallel"]}
      ins(%resource, %taps : tensor<4xf32>, tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32, %out: f32):
    %q = arith.divf %a, %b : f32
    linalg.yield %q : f32
  } -> tensor<4xf32>
  return %r : tensor<4xf32>
}

{-#
  dialect_resources: {
    builtin: {
      blob: "0x040000000000803F000000400000404000008040"
    }
  }
#-}
