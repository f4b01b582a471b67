// PASSES: expand-packing
//
// Copies into panels become loops, with the bounds and the conversions that they have. Others stay.

// CHECK-LABEL: func.func @main
// CHECK:         %[[PANEL:.*]] = memref.alloca
// CHECK-NEXT:    affine.for %[[K:.*]] = 0 to 512 {
// CHECK-NEXT:      affine.for %[[L:.*]] = 0 to min #{{.*}}(%[[N:.*]]) {
// CHECK-NEXT:        %[[X:.*]] = affine.load %arg0[%[[K]], %[[N]] * 32 + %[[L]]]
// CHECK-NEXT:        %[[Y:.*]] = arith.extf %[[X]] : f16 to f32
// CHECK-NEXT:        affine.store %[[Y]], %[[PANEL]][%[[K]], %[[L]]]
// CHECK-NOT:     "polyblocks.copy"({{.*}}kind = "pack"
// CHECK:         "polyblocks.copy"(%arg0, {{.*}}kind = "asynchronous"
module {
  func.func @main(%b: memref<512x72xf16>, %c: memref<72xf32>) {
    affine.for %n = 0 to 3 {
      %p = memref.alloca() : memref<512x32xf32>
      "polyblocks.copy"(%b, %p, %n) {
        kind = "pack", shape = array<i64: 512, 32>,
        from = affine_map<(d0)[s0, s1] -> (s0, d0 * 32 + s1)>,
        to = affine_map<(d0)[s0, s1] -> (s0, s1)>,
        upper = [affine_map<(d0)[s0, s1] -> ()>, affine_map<(d0)[s0, s1] -> (d0 * -32 + 72)>],
        conversions = [{name = "arith.extf", type = f32, attributes = {}}]
      } : (memref<512x72xf16>, memref<512x32xf32>, index) -> ()
      affine.for %l = 0 to min affine_map<(d0) -> (d0 * -32 + 72, 32)>(%n) {
        %x = affine.load %p[511, %l] : memref<512x32xf32>
        affine.store %x, %c[%n * 32 + %l] : memref<72xf32>
      }
    }
    affine.for %i = 0 to 512 {
      %s = memref.alloca() : memref<72xf16, "shared">
      "polyblocks.copy"(%b, %s, %i) {
        kind = "asynchronous", shape = array<i64: 72>,
        from = affine_map<(d0)[s0] -> (d0, s0)>, to = affine_map<(d0)[s0] -> (s0)>
      } : (memref<512x72xf16>, memref<72xf16, "shared">, index) -> ()
    }
    return
  }
}
