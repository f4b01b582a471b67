// PASSES: normalize-nests,narrow-values,vectorize-nests
// ARCH: x86-64-v4
//
// Lanes look numbers up in a row that a loop around chooses: at distances from its begin, and the
// next row is fetched meanwhile, one line for a vector, or two where it is twice as long as the
// loop.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8192 {
// CHECK:           %[[NEXT:.*]] = affine.apply #{{.*}}(%[[I]])
// CHECK:           scf.for %[[J:.*]] =
// CHECK-NEXT:        memref.prefetch %[[X:.*]][%[[NEXT]], %[[J]]], read, locality<3>, data : memref<8192x256xf32>
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.gather %[[X]][%[[I]], %c0] [%{{.*}}], {{.*}} : memref<8192x256xf32>, vector<16xi32>
// CHECK:         affine.for
// CHECK-COUNT-2:     memref.prefetch
// CHECK-NOT:         memref.prefetch
// CHECK:             vector.gather %{{.*}} : memref<4096x512xf32>
//
// Not of a table that stays in a cache, nor of a row of which few lines are used, or where the same
// row is used again and again.
//
// CHECK-NOT:     memref.prefetch
func.func @main(%x: memref<8192x256xf32>, %at: memref<8192x256xi32>, %out: memref<8192x256xf32>,
                %long: memref<4096x512xf32>, %near: memref<64x256xf32>, %wide: memref<512x8192xf32>,
                %narrow: memref<262144x8xf32>) {
  affine.for %i = 0 to 8192 { affine.for %j = 0 to 256 {
    %n = affine.load %at[%i, %j] : memref<8192x256xi32>
    %c3 = arith.constant 3 : i32
    %m = arith.xori %n, %c3 : i32
    %k = arith.index_cast %m : i32 to index
    %v = memref.load %x[%i, %k] : memref<8192x256xf32>
    %w = math.sqrt %v : f32
    %u = arith.addf %w, %v : f32
    affine.store %u, %out[%i, %j] : memref<8192x256xf32>
  } }
  affine.for %i = 0 to 4096 { affine.for %j = 0 to 256 {
    %n = affine.load %at[%i, %j] : memref<8192x256xi32>
    %c3 = arith.constant 3 : i32
    %m = arith.xori %n, %c3 : i32
    %k = arith.index_cast %m : i32 to index
    %v = memref.load %long[%i, %k] : memref<4096x512xf32>
    %w = math.sqrt %v : f32
    %u = arith.addf %w, %v : f32
    affine.store %u, %out[%i, %j] : memref<8192x256xf32>
  } }
  affine.for %i = 0 to 64 { affine.for %j = 0 to 256 {
    %n = affine.load %at[%i, %j] : memref<8192x256xi32>
    %c3 = arith.constant 3 : i32
    %m = arith.xori %n, %c3 : i32
    %k = arith.index_cast %m : i32 to index
    %v = memref.load %near[%i, %k] : memref<64x256xf32>
    %w = math.sqrt %v : f32
    %u = arith.addf %w, %v : f32
    affine.store %u, %out[%i, %j] : memref<8192x256xf32>
  } }
  affine.for %i = 0 to 512 { affine.for %j = 0 to 256 {
    %n = affine.load %at[%i, %j] : memref<8192x256xi32>
    %c3 = arith.constant 3 : i32
    %m = arith.xori %n, %c3 : i32
    %k = arith.index_cast %m : i32 to index
    %v = memref.load %wide[%i, %k] : memref<512x8192xf32>
    %w = math.sqrt %v : f32
    %u = arith.addf %w, %v : f32
    affine.store %u, %out[%i, %j] : memref<8192x256xf32>
  } }
  affine.for %i = 0 to 8192 { affine.for %j = 0 to 256 {
    %n = affine.load %at[%i, %j] : memref<8192x256xi32>
    %c3 = arith.constant 3 : i32
    %m = arith.xori %n, %c3 : i32
    %k = arith.index_cast %m : i32 to index
    %v = memref.load %narrow[%i, %k] : memref<262144x8xf32>
    %w = math.sqrt %v : f32
    %u = arith.addf %w, %v : f32
    affine.store %u, %out[%i, %j] : memref<8192x256xf32>
  } }
  return
}
