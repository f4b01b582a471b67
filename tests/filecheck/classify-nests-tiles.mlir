// PASSES: classify-nests
//
// A loop of the program around two nests is marked as a tile: each of them is ordered as if it stood
// alone. One around a reduction and what is done with its result is none.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for
// CHECK:         } {polyblocks.kernel = {{.*}}, polyblocks.sources = [], polyblocks.tile}
// CHECK:         affine.for
// CHECK-NOT:     polyblocks.tile
// CHECK:         return
func.func @main(%a: memref<8x9xf32>, %b: memref<8x9xf32>, %c: memref<8xf32>) {
  %zero = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    affine.for %j = 0 to 9 {
      %x = affine.load %a[%i, %j] : memref<8x9xf32>
      %y = math.exp %x : f32
      affine.store %y, %b[%i, %j] : memref<8x9xf32>
    }
    affine.for %j = 0 to 8 {
      %x = affine.load %b[%i, %j + 1] : memref<8x9xf32>
      affine.store %x, %a[%i, %j] : memref<8x9xf32>
    }
  }
  affine.for %i = 0 to 8 {
    %s = affine.for %j = 0 to 9 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %b[%i, %j] : memref<8x9xf32>
      %y = arith.addf %t, %x : f32
      affine.yield %y : f32
    }
    %r = math.sqrt %s : f32
    affine.store %r, %c[%i] : memref<8xf32>
  }
  return
}
