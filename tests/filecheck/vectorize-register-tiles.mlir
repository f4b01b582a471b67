// PASSES: vectorize-nests
//
// Lanes run along the loop around the rows and steps of a register tile, two vectors at a time:
// columns are loaded as vectors, rows one by one. What is left of the columns is one vector under a
// mask.

// CHECK-LABEL: func.func @main
// CHECK:         scf.for %[[J:.*]] = %{{.*}} to %{{.*}} step %c32 {
// CHECK:           affine.for %[[I:.*]] = 0 to 4 {
// CHECK:             %[[S:.*]]:2 = affine.for %[[K:.*]] = 0 to 9 iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (vector<32xf32>, vector<32xf32>) {
// CHECK:               vector.load %arg1[%[[K]], %[[J]]] : memref<9x74xf32>, vector<32xf32>
// CHECK:               memref.load %arg0[%{{.*}}, %[[K]]]
// CHECK:               vector.broadcast
// CHECK:               arith.mulf %{{.*}} : vector<32xf32>
// CHECK:               affine.yield %{{.*}}, %{{.*}} : vector<32xf32>, vector<32xf32>
// CHECK:             vector.store %[[S]]#0, %arg2[%{{.*}}, %[[J]]]
// CHECK:             vector.store %[[S]]#1, %arg2[%{{.*}}, %[[J]]]
// CHECK:         affine.for %{{.*}} = 0 to 4 {
// CHECK:           affine.for {{.*}} -> (vector<16xf32>, vector<16xf32>) {
// CHECK:             vector.maskedload %arg1
// CHECK:           vector.maskedstore %arg2

module {
  func.func @main(%a: memref<8x9xf32>, %b: memref<9x74xf32>, %c: memref<8x74xf32>) {
    affine.for %j = 0 to 74 {
      affine.for %i = 0 to 4 {
        %z = arith.constant 0.0 : f32
        %r:2 = affine.for %k = 0 to 9 iter_args(%s = %z, %t = %z) -> (f32, f32) {
          %y = affine.load %b[%k, %j] : memref<9x74xf32>
          %x0 = affine.load %a[%i * 2, %k] : memref<8x9xf32>
          %p0 = arith.mulf %x0, %y fastmath<contract> : f32
          %s0 = arith.addf %s, %p0 fastmath<contract> : f32
          %x1 = affine.load %a[%i * 2 + 1, %k] : memref<8x9xf32>
          %p1 = arith.mulf %x1, %y fastmath<contract> : f32
          %s1 = arith.addf %t, %p1 fastmath<contract> : f32
          affine.yield %s0, %s1 : f32, f32
        }
        affine.store %r#0, %c[%i * 2, %j] : memref<8x74xf32>
        affine.store %r#1, %c[%i * 2 + 1, %j] : memref<8x74xf32>
      }
    } {polyblocks.lanes = 32 : i64}
    return
  }
}
