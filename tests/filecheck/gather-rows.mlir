// PASSES: normalize-nests,gather-rows
//
// What is looked up at the same places in all channels is copied so that the channels lie side by
// side. Places and weights of a row of samples are computed first, vectors of channels are loaded
// at each place, and the results are transposed at last.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[X:.*]] = 0 to 100 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[C]], %[[X]]] : memref<8x100xf32>
// CHECK-NEXT:        affine.store %{{.*}}, %[[ROWS:.*]][%[[X]], %[[C]]] : memref<100x8xf32>
// CHECK:         affine.for %[[B:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 64 {
// CHECK:             affine.for %[[J:.*]] = 0 to 40 {
// CHECK:               affine.load %{{.*}}[%[[B]], %[[I]], %[[J]]]
// CHECK:               cf.assert
// CHECK:               affine.store %{{.*}}, %[[PLACES:.*]][%[[J]]] : memref<40xi32>
// CHECK:               affine.store %{{.*}}, %{{.*}}[%[[J]]] : memref<40xf32>
// CHECK:             affine.for %[[J:.*]] = 0 to 40 {
// CHECK:               affine.load %[[PLACES]][%[[J]]]
// CHECK:               affine.for %[[C:.*]] = 0 to 8 {
// CHECK:                 memref.load %[[ROWS]][%{{.*}}, %[[C]]]
// CHECK:                 affine.store %{{.*}}, %[[RESULTS:.*]][%[[J]], %[[C]]] : memref<40x8xf32>
// CHECK:             affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:          affine.for %[[J:.*]] = 0 to 40 {
// CHECK-NEXT:            affine.load %[[RESULTS]][%[[J]], %[[C]]]
// CHECK-NEXT:            affine.store %{{.*}}, %{{.*}}[%[[B]], %[[C]], %[[I]], %[[J]]]
//
// Long rows of samples are blocks. Channels that lie side by side are not copied.
//
// CHECK:         affine.for %[[I:.*]] = 0 to 64 {
// CHECK-NEXT:      affine.for %[[K:.*]] = 0 to 4 {
// CHECK:             affine.for %[[J:.*]] = 0 to min #{{.*}}(%[[K]]) {
// CHECK:               affine.load %{{.*}}[%[[I]], %[[K]] * 64 + %[[J]]]
// CHECK:             affine.for %{{.*}} = 0 to min
// CHECK:               affine.for %[[C:.*]] = 0 to 8 {
// CHECK:                 memref.load %{{.*}}[%{{.*}}, %[[C]]] : memref<100x8xf32>
//
// A copy is not worth it for few lookups, and not of few channels.
//
// CHECK:           affine.for %{{.*}} = 0 to 16 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 40 {
// CHECK:               memref.load %{{.*}} : memref<8x90000xf32>
// CHECK:         affine.for %{{.*}} = 0 to 3 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 40 {
// CHECK:               memref.load %{{.*}} : memref<3x100xf32>
//
// A lookup at a place without the channel stays behind a check of a place that depends on it.
//
// CHECK:         affine.for %{{.*}} = 0 to 8 {
// CHECK-NEXT:      affine.for %{{.*}} = 0 to 64 {
// CHECK-NEXT:        affine.for %{{.*}} = 0 to 40 {
// CHECK:               cf.assert
// CHECK:               memref.load %{{.*}} : memref<100x40xf32>
func.func @main(%x: memref<8x100xf32>, %at: memref<3x64x40xf32>, %out: memref<3x8x64x40xf32>,
                %y: memref<100x8xf32>, %n: memref<64x200xi64>, %o2: memref<8x64x200xf32>,
                %z: memref<8x90000xf32>, %o3: memref<8x16x40xf32>,
                %u: memref<3x100xf32>, %o4: memref<3x64x40xf32>,
                %m: memref<8x64xi64>, %t: memref<100x40xf32>, %o5: memref<8x64x40xf32>) {
  %c100 = arith.constant 100 : index
  %half = arith.constant 0.5 : f32
  affine.for %b = 0 to 3 { affine.for %c = 0 to 8 { affine.for %i = 0 to 64 { affine.for %j = 0 to 40 {
    %p = affine.load %at[%b, %i, %j] : memref<3x64x40xf32>
    %q = arith.mulf %p, %half : f32
    %k = arith.fptosi %p : f32 to i64
    %l = arith.index_cast %k : i64 to index
    %ok = arith.cmpi ult, %l, %c100 : index
    cf.assert %ok, "index out of range"
    %v = memref.load %x[%c, %l] : memref<8x100xf32>
    %w = arith.mulf %v, %q : f32
    affine.store %w, %out[%b, %c, %i, %j] : memref<3x8x64x40xf32>
  } } } }
  affine.for %c = 0 to 8 { affine.for %i = 0 to 64 { affine.for %j = 0 to 200 {
    %k = affine.load %n[%i, %j] : memref<64x200xi64>
    %l = arith.index_cast %k : i64 to index
    %v = memref.load %y[%l, %c] : memref<100x8xf32>
    affine.store %v, %o2[%c, %i, %j] : memref<8x64x200xf32>
  } } }
  affine.for %c = 0 to 8 { affine.for %i = 0 to 16 { affine.for %j = 0 to 40 {
    %p = affine.load %at[2, %i, %j] : memref<3x64x40xf32>
    %k = arith.fptosi %p : f32 to i64
    %l = arith.index_cast %k : i64 to index
    %v = memref.load %z[%c, %l] : memref<8x90000xf32>
    affine.store %v, %o3[%c, %i, %j] : memref<8x16x40xf32>
  } } }
  affine.for %c = 0 to 3 { affine.for %i = 0 to 64 { affine.for %j = 0 to 40 {
    %p = affine.load %at[2, %i, %j] : memref<3x64x40xf32>
    %k = arith.fptosi %p : f32 to i64
    %l = arith.index_cast %k : i64 to index
    %v = memref.load %u[%c, %l] : memref<3x100xf32>
    affine.store %v, %o4[%c, %i, %j] : memref<3x64x40xf32>
  } } }
  affine.for %c = 0 to 8 { affine.for %i = 0 to 64 { affine.for %j = 0 to 40 {
    %p = affine.load %m[%c, %i] : memref<8x64xi64>
    %k = arith.index_cast %p : i64 to index
    %ok = arith.cmpi ult, %k, %c100 : index
    cf.assert %ok, "index out of range"
    %q = affine.load %n[%i, 0] : memref<64x200xi64>
    %l = arith.index_cast %q : i64 to index
    %v = memref.load %t[%l, %j] : memref<100x40xf32>
    affine.store %v, %o5[%c, %i, %j] : memref<8x64x40xf32>
  } } }
  return
}
