// PASSES: classify-nests,estimate-nests
// TARGET: gpu
//
// A nest says what it costs; straight-line code, which is no kernel, and everything else stays.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT:      %[[X:.*]] = affine.load %{{.*}}[%[[I]]] : memref<64xf32>
// CHECK-NEXT:      %[[Y:.*]] = arith.mulf %[[X]], %[[X]] : f32
// CHECK-NEXT:      affine.store %[[Y]], %{{.*}}[%[[I]]] : memref<64xf32>
// CHECK-NEXT:    } {polyblocks.estimate = {bound = "compute"
// CHECK-SAME:         bytes = {L2 = 0 : i64, main = 0 : i64, registers = 512 : i64, shared = 0 : i64}
// CHECK-SAME:         floor_bytes = 512 : i64, flops = 64 : i64, iterations = 64 : i64
// CHECK-SAME:         polyblocks.kernel = "pointwise"
// CHECK:         affine.store %{{.*}}[0]
// CHECK-NOT:     polyblocks.estimate
func.func @main(%a: memref<64xf32>, %b: memref<64xf32>) {
  affine.for %i = 0 to 64 {
    %x = affine.load %a[%i] : memref<64xf32>
    %y = arith.mulf %x, %x : f32
    affine.store %y, %b[%i] : memref<64xf32>
  }
  %c = affine.load %a[1] : memref<64xf32>
  affine.store %c, %a[0] : memref<64xf32>
  return
}
