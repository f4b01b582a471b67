// PASSES: interchange-loops
//
// Loops run in the order of the memory that is stored to. A loop that carries values stays inside,
// and so do loops of a nest that stores in two orders.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[C:.*]] = 0 to 6 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 4 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to 5 {
// CHECK:               affine.for %{{.*}} = 0 to 3 iter_args
// CHECK:               affine.store %{{.*}}, %arg1[%[[C]], %[[I]], %[[J]]]
// CHECK:         affine.for %[[A:.*]] = 0 to 4 {
// CHECK-NEXT:      affine.for %[[B:.*]] = 0 to 5 {
// CHECK:             affine.store %{{.*}}, %arg2[%[[B]], %[[A]]]

module {
  func.func @main(%x: memref<6x6x8xf32>, %y: memref<6x4x5xf32>, %p: memref<5x4xf32>,
                  %q: memref<4x5xf32>) {
    %z = arith.constant 0.0 : f32
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 5 {
        affine.for %c = 0 to 6 {
          %s = affine.for %k = 0 to 3 iter_args(%t = %z) -> (f32) {
            %v = affine.load %x[%c, %i, %j + %k] : memref<6x6x8xf32>
            %w = arith.addf %t, %v : f32
            affine.yield %w : f32
          }
          affine.store %s, %y[%c, %i, %j] : memref<6x4x5xf32>
        }
      }
    }
    affine.for %i = 0 to 4 {
      affine.for %j = 0 to 5 {
        %v = affine.load %x[0, %i, %j] : memref<6x6x8xf32>
        affine.store %v, %p[%j, %i] : memref<5x4xf32>
        affine.store %v, %q[%i, %j] : memref<4x5xf32>
      }
    }
    return
  }
}
