// PASSES: normalize-nests,share-indices
//
// The places of samples are the same in all channels: lanes compute them, and go through the
// channels with them.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[B:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT:        affine.for %[[J:.*]] = 0 to 40 {
// CHECK:               affine.load %{{.*}}[%[[B]], %[[I]], %[[J]]]
// CHECK:               math.floor
// CHECK:               cf.assert
// CHECK:               affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NOT:             math.floor
// CHECK:                 memref.load
// CHECK:                 affine.store %{{.*}}, %{{.*}}[%[[B]], %[[C]], %[[I]], %[[J]]]
//
// What is looked up without work before it stays as it is, and so does what few threads would share.
//
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 40 {
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 2 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 40 {
func.func @main(%x: memref<8x100xf32>, %at: memref<3x64x40xf32>, %out: memref<3x8x64x40xf32>,
                %n: memref<64x40xi64>, %o2: memref<8x64x40xf32>, %o3: memref<8x2x40xf32>) {
  %c100 = arith.constant 100 : index
  %half = arith.constant 0.5 : f32
  affine.for %b = 0 to 3 { affine.for %c = 0 to 8 { affine.for %i = 0 to 64 { affine.for %j = 0 to 40 {
    %p = affine.load %at[%b, %i, %j] : memref<3x64x40xf32>
    %q = arith.mulf %p, %half : f32
    %r = arith.addf %q, %half : f32
    %s = math.floor %r : f32
    %w = arith.subf %r, %s : f32
    %k = arith.fptosi %s : f32 to i64
    %l = arith.index_cast %k : i64 to index
    %ok = arith.cmpi ult, %l, %c100 : index
    cf.assert %ok, "index out of range"
    %v = memref.load %x[%c, %l] : memref<8x100xf32>
    %u = arith.mulf %v, %w : f32
    affine.store %u, %out[%b, %c, %i, %j] : memref<3x8x64x40xf32>
  } } } }
  affine.for %c = 0 to 8 { affine.for %i = 0 to 64 { affine.for %j = 0 to 40 {
    %k = affine.load %n[%i, %j] : memref<64x40xi64>
    %l = arith.index_cast %k : i64 to index
    %v = memref.load %x[%c, %l] : memref<8x100xf32>
    affine.store %v, %o2[%c, %i, %j] : memref<8x64x40xf32>
  } } }
  affine.for %c = 0 to 8 { affine.for %i = 0 to 2 { affine.for %j = 0 to 40 {
    %p = affine.load %at[2, %i, %j] : memref<3x64x40xf32>
    %q = arith.mulf %p, %half : f32
    %r = arith.addf %q, %half : f32
    %s = math.floor %r : f32
    %w = arith.subf %r, %s : f32
    %k = arith.fptosi %s : f32 to i64
    %l = arith.index_cast %k : i64 to index
    %v = memref.load %x[%c, %l] : memref<8x100xf32>
    %u = arith.mulf %v, %w : f32
    affine.store %u, %o3[%c, %i, %j] : memref<8x2x40xf32>
  } } }
  return
}
