// PASSES: choose-layouts
//
// A triangular loop has no lanes: what it updates in place stays as the program wrote it, however
// copies around it walk.

// CHECK-LABEL: func.func @main
// CHECK:         memref.alloc() : memref<64x32xf32>
// CHECK:         affine.for %[[K:.*]] = 0 to 32
// CHECK:           affine.for %[[J:.*]] = #{{.*}}(%[[K]]) to 32
// CHECK:             affine.load %{{.*}}[%[[K]], %[[J]]] : memref<64x32xf32>
func.func @main(%a: memref<32x64xf32>, %b: memref<32x64xf32>) {
  %t = memref.alloc() : memref<64x32xf32>
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 64 {
      %x = affine.load %a[%i, %j] : memref<32x64xf32>
      affine.store %x, %t[%j, %i] : memref<64x32xf32>
    }
  }
  affine.for %k = 0 to 32 {
    affine.for %j = affine_map<(k) -> (k)>(%k) to 32 {
      %x = affine.load %t[%k, %j] : memref<64x32xf32>
      %y = arith.addf %x, %x : f32
      affine.store %y, %t[%k, %j] : memref<64x32xf32>
    }
  }
  affine.for %i = 0 to 32 {
    affine.for %j = 0 to 64 {
      %x = affine.load %t[%j, %i] : memref<64x32xf32>
      affine.store %x, %b[%i, %j] : memref<32x64xf32>
    }
  }
  return
}
