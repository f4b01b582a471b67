// PASSES: flatten-nests
//
// Dense loops become one loop over one-dimensional views. A transposed access keeps both loops. The
// loops of a sum over the last two dimensions become one; so do those in a tile, but not where they
// index the tile's own buffer.

// CHECK-LABEL: func.func @main
// CHECK-DAG:     memref.reinterpret_cast %{{.*}} to offset: [0], sizes: [300], strides: [1] : memref<100x3xf32> to memref<300xf32>
// CHECK:         affine.for %[[T:.*]] = 0 to 300 {
// CHECK-NEXT:      affine.load %{{.*}}[%[[T]]] : memref<300xf32>
// CHECK:         affine.for %{{.*}} = 0 to 100 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 3 {
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.for %[[T:.*]] = 0 to 3136 iter_args
// CHECK-NEXT:        affine.load %{{.*}}[%[[I]] * 3136 + %[[T]]] : memref<25088xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           affine.for %{{.*}} = 0 to 56 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 56 {
// CHECK:           affine.for %[[T:.*]] = 0 to 3136 {
func.func @main(%a: memref<100x3xf32>, %b: memref<100x3xf32>, %c: memref<3x100xf32>,
                %d: memref<8x56x56xf32>, %e: memref<8xf32>, %f: memref<8x56x56xf32>) {
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 3 {
      %x = affine.load %a[%i, %j] : memref<100x3xf32>
      %y = arith.negf %x : f32
      affine.store %y, %b[%i, %j] : memref<100x3xf32>
    }
  }
  affine.for %i = 0 to 100 {
    affine.for %j = 0 to 3 {
      %x = affine.load %a[%i, %j] : memref<100x3xf32>
      affine.store %x, %c[%j, %i] : memref<3x100xf32>
    }
  }
  %z = arith.constant 0.0 : f32
  affine.for %i = 0 to 8 {
    %r = affine.for %j = 0 to 56 iter_args(%outer = %z) -> (f32) {
      %s = affine.for %k = 0 to 56 iter_args(%acc = %outer) -> (f32) {
        %x = affine.load %d[%i, %j, %k] : memref<8x56x56xf32>
        %t = arith.addf %acc, %x fastmath<reassoc,contract> : f32
        affine.yield %t : f32
      }
      affine.yield %s : f32
    }
    affine.store %r, %e[%i] : memref<8xf32>
  }
  affine.for %i = 0 to 8 {
    %own = memref.alloca() : memref<56x64xf32>
    affine.for %j = 0 to 56 {
      affine.for %k = 0 to 56 {
        %x = affine.load %d[%i, %j, %k] : memref<8x56x56xf32>
        affine.store %x, %own[%j, %k] : memref<56x64xf32>
      }
    }
    affine.for %j = 0 to 56 {
      affine.for %k = 0 to 56 {
        %x = affine.load %d[%i, %j, %k] : memref<8x56x56xf32>
        %y = affine.load %own[0, 0] : memref<56x64xf32>
        %t = arith.addf %y, %x : f32
        affine.store %t, %f[%i, %j, %k] : memref<8x56x56xf32>
      }
    }
  } {polyblocks.tile}
  return
}
