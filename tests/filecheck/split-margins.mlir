// PASSES: split-margins
//
// Sums of arrays with zeros around different parts are a nest for each part, which reads none of
// them: nothing stores zeros. A sum whose parts overlap stays whole (%r and %t).

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      %[[X:.*]] = affine.load %{{.*}}[%[[I]]] : memref<8xf32>
// CHECK-NEXT:      affine.store %[[X]], %[[P:.*]][%[[I]]] : memref<16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK-NEXT:      %[[X:.*]] = affine.load %{{.*}}[%[[I]]] : memref<8xf32>
// CHECK-NEXT:      affine.store %[[X]], %[[Q:.*]][%[[I]] + 8] : memref<16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[X:.*]] = affine.load %[[P]][%[[I]]] : memref<16xf32>
// CHECK:           %[[S:.*]] = arith.addf %[[X]], %{{.*}} : f32
// CHECK:           affine.store %[[S]], %{{.*}}[%[[I]]] : memref<16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 8 {
// CHECK:           %[[X:.*]] = affine.load %[[Q]][%[[I]] + 8] : memref<16xf32>
// CHECK:           %[[S:.*]] = arith.addf %{{.*}}, %[[X]] : f32
// CHECK:           affine.store %[[S]], %{{.*}}[%[[I]] + 8] : memref<16xf32>
// CHECK:         affine.for %[[I:.*]] = 0 to 12 {
// CHECK:           affine.load %{{.*}}[%[[I]]] : memref<12xf32>
// CHECK:           affine.load %{{.*}}[%[[I]]] : memref<12xf32>
func.func @main(%a: memref<8xf32>, %b: memref<8xf32>, %c: memref<16xf32>, %d: memref<12xf32>) {
  %p = memref.alloc() : memref<16xf32>
  %q = memref.alloc() : memref<16xf32>
  %r = memref.alloc() : memref<12xf32>
  %t = memref.alloc() : memref<12xf32>
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %p[%i + 8] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %p[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %q[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %b[%i] : memref<8xf32>
    affine.store %x, %q[%i + 8] : memref<16xf32>
  }
  affine.for %i = 0 to 16 {
    %x = affine.load %p[%i] : memref<16xf32>
    %y = affine.load %q[%i] : memref<16xf32>
    %s = arith.addf %x, %y : f32
    affine.store %s, %c[%i] : memref<16xf32>
  }
  affine.for %i = 0 to 4 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %r[%i] : memref<12xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %b[%i] : memref<8xf32>
    affine.store %x, %r[%i + 4] : memref<12xf32>
  }
  affine.for %i = 0 to 4 {
    %zero = arith.constant 0.0 : f32
    affine.store %zero, %t[%i + 8] : memref<12xf32>
  }
  affine.for %i = 0 to 8 {
    %x = affine.load %a[%i] : memref<8xf32>
    affine.store %x, %t[%i] : memref<12xf32>
  }
  affine.for %i = 0 to 12 {
    %x = affine.load %r[%i] : memref<12xf32>
    %y = affine.load %t[%i] : memref<12xf32>
    %s = arith.addf %x, %y : f32
    affine.store %s, %d[%i] : memref<12xf32>
  }
  return
}
