// PASSES: normalize-nests,copy-columns
//
// Images whose channels are added to rows at run-time places are copied, so that the channels lie
// side by side. All nests that read them share the copy, until they are written.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 20 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 10 {
// CHECK-NEXT:        affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:          affine.load %{{.*}}[%[[C]], %[[I]], %[[J]]] : memref<8x20x10xf32>
// CHECK-NEXT:          affine.store %{{.*}}, %[[ROWS:.*]][%[[I]] * 10 + %[[J]], %[[C]]] : memref<200x8xf32>
// CHECK:         affine.for %[[P:.*]] = 0 to 200 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:        affine.load %[[ROWS]][%[[P]], %[[C]]] : memref<200x8xf32>
// CHECK:             memref.store
// CHECK-NOT:     affine.store
// CHECK:         affine.for %[[P:.*]] = 0 to 200 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:        affine.load %[[ROWS]][%[[P]], %[[C]]] : memref<200x8xf32>
// CHECK:         affine.store
// CHECK:         affine.for %{{.*}} = 0 to 20 {
// CHECK:               affine.store %{{.*}}, %[[OTHER:.*]][%{{.*}}, %{{.*}}] : memref<200x8xf32>
// CHECK:         affine.for %{{.*}} = 0 to 200 {
// CHECK:             affine.load %[[OTHER]]
//
// Rows that are written to in their order are point-wise nests, which transpose squares.
//
// CHECK:         affine.for %[[P:.*]] = 0 to 200 {
// CHECK-NEXT:      affine.for %[[C:.*]] = 0 to 8 {
// CHECK-NEXT:        affine.load %{{.*}}[%[[C]], %[[P]] floordiv 10, %[[P]] mod 10] : memref<8x20x10xf32>
func.func @main(%x: memref<8x20x10xf32>, %at: memref<200xindex>, %a: memref<100x8xf32>,
                %b: memref<100x8xf32>, %c: memref<200x8xf32>) {
  %one = arith.constant 1.0 : f32
  affine.for %p = 0 to 200 { affine.for %k = 0 to 8 {
    %v = affine.load %x[%k, %p floordiv 10, %p mod 10] : memref<8x20x10xf32>
    %i = affine.load %at[%p] : memref<200xindex>
    %old = memref.load %a[%i, %k] : memref<100x8xf32>
    %new = arith.addf %old, %v : f32
    memref.store %new, %a[%i, %k] : memref<100x8xf32>
  } }
  affine.for %p = 0 to 200 { affine.for %k = 0 to 8 {
    %v = affine.load %x[%k, %p floordiv 10, %p mod 10] : memref<8x20x10xf32>
    %i = affine.load %at[%p] : memref<200xindex>
    %old = memref.load %b[%i, %k] : memref<100x8xf32>
    %new = arith.addf %old, %v : f32
    memref.store %new, %b[%i, %k] : memref<100x8xf32>
  } }
  affine.for %i = 0 to 20 { affine.for %j = 0 to 10 {
    affine.store %one, %x[3, %i, %j] : memref<8x20x10xf32>
  } }
  affine.for %p = 0 to 200 { affine.for %k = 0 to 8 {
    %v = affine.load %x[%k, %p floordiv 10, %p mod 10] : memref<8x20x10xf32>
    %i = affine.load %at[%p] : memref<200xindex>
    %old = memref.load %b[%i, %k] : memref<100x8xf32>
    %new = arith.addf %old, %v : f32
    memref.store %new, %b[%i, %k] : memref<100x8xf32>
  } }
  affine.for %p = 0 to 200 { affine.for %k = 0 to 8 {
    %v = affine.load %x[%k, %p floordiv 10, %p mod 10] : memref<8x20x10xf32>
    affine.store %v, %c[%p, %k] : memref<200x8xf32>
  } }
  return
}
