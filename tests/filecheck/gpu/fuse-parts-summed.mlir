// PASSES: fuse-parts
// TARGET: nvgpu sm_90a
//
// Halves that change places, read by sums over all rows: a tile of those has some columns, which
// steps between the halves would not let it have. The array stays.

// CHECK-LABEL: func.func @main
// CHECK:       memref.alloc
// CHECK-NOT:   floordiv
func.func @main(%x: memref<2048x64xf32>, %y: memref<2048x64xf32>, %sums: memref<64xf32>,
                %others: memref<64xf32>) {
  %t = memref.alloc() : memref<2048x64xf32>
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 32 {
      %v = affine.load %x[%i, %j + 32] : memref<2048x64xf32>
      %n = arith.negf %v : f32
      affine.store %n, %t[%i, %j] : memref<2048x64xf32>
    }
  }
  affine.for %i = 0 to 2048 {
    affine.for %j = 0 to 32 {
      %v = affine.load %x[%i, %j] : memref<2048x64xf32>
      affine.store %v, %t[%i, %j + 32] : memref<2048x64xf32>
    }
  }
  affine.for %j = 0 to 64 {
    %zero = arith.constant 0.0 : f32
    %s = affine.for %i = 0 to 2048 iter_args(%a = %zero) -> (f32) {
      %v = affine.load %t[%i, %j] : memref<2048x64xf32>
      %w = affine.load %y[%i, %j] : memref<2048x64xf32>
      %p = arith.mulf %v, %w : f32
      %b = arith.addf %a, %p fastmath<reassoc> : f32
      affine.yield %b : f32
    }
    affine.store %s, %sums[%j] : memref<64xf32>
  }
  affine.for %j = 0 to 64 {
    %zero = arith.constant 0.0 : f32
    %s = affine.for %i = 0 to 2048 iter_args(%a = %zero) -> (f32) {
      %v = affine.load %t[%i, %j] : memref<2048x64xf32>
      %b = arith.addf %a, %v fastmath<reassoc> : f32
      affine.yield %b : f32
    }
    affine.store %s, %others[%j] : memref<64xf32>
  }
  func.return
}
