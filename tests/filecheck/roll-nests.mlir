// PASSES: classify-nests,roll-nests
// TARGET: gpu
//
// Both margins of a padded array are one nest, past the ones along the other dimension, which are
// another one; so are three rows that are equally far apart, and sums of two rows. What is written
// on, what is stored in one place twice, rows between which one is read, other operations,
// other bounds, and large nests stay as they are.

// CHECK-LABEL: func.func @main
// CHECK:         affine.for %[[N:.*]] = 0 to 2 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 10 {
// CHECK:             affine.store %{{.*}}, %[[P:.*]][%[[N]] * 7, %[[J]]] : memref<8x10xf32>
// CHECK:         affine.for %[[N:.*]] = 0 to 2 {
// CHECK-NEXT:      affine.for %[[I:.*]] = 0 to 6 {
// CHECK:             affine.store %{{.*}}, %[[P]][%[[I]] + 1, %[[N]] * 9] : memref<8x10xf32>
//
// CHECK:         affine.for %[[N:.*]] = 0 to 3 {
// CHECK-NEXT:      affine.for %[[J:.*]] = 0 to 10 {
// CHECK:             %[[X:.*]] = affine.load %arg0[%[[N]] * 2, %[[J]]]
// CHECK:             arith.negf %[[X]]
// CHECK:             affine.store %{{.*}}, %arg1[-%[[N]] + 4, %[[J]]]
//
// CHECK:         affine.for %[[N:.*]] = 0 to 2 {
// CHECK:           affine.for %[[J:.*]] = 0 to 10 iter_args(
// CHECK:             affine.load %arg0[%[[N]] + 3, %[[J]]]
// CHECK:           affine.store %{{.*}}, %arg2[%[[N]]]
//
// CHECK:         affine.load %arg1[4, %{{.*}}]
// CHECK:         affine.load %arg1[3, %{{.*}}]
// CHECK:         affine.store %{{.*}}, %arg2[7]
// CHECK:         affine.store %{{.*}}, %arg2[7]
// CHECK:         affine.store %{{.*}}, %arg2[5]
// CHECK:         affine.load %arg2[6]
// CHECK:         affine.store %{{.*}}, %arg2[6]
// CHECK:         math.absf
// CHECK:         arith.negf
// CHECK:         affine.for %{{.*}} = #{{.*}}(%{{.*}}) to 10 {
// CHECK:         affine.for %{{.*}} = 0 to 10 {
// CHECK:           affine.store %{{.*}}, %arg4[%{{.*}} + 4, %{{.*}}]
// CHECK:         affine.store %{{.*}}, %arg3[0, %{{.*}}]
// CHECK:         affine.store %{{.*}}, %arg3[1, %{{.*}}]

func.func @main(%a: memref<8x10xf32>, %b: memref<8x10xf32>, %c: memref<8xf32>,
                %d: memref<2x100000000xf32>, %e: memref<8x10xf32>) {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %p = memref.alloc() : memref<8x10xf32>
  // The margins of an array: rows, then columns.
  affine.for %j = 0 to 10 { affine.store %zero, %p[0, %j] : memref<8x10xf32> }
  affine.for %j = 0 to 10 { affine.store %zero, %p[7, %j] : memref<8x10xf32> }
  affine.for %i = 0 to 6 { affine.store %zero, %p[%i + 1, 0] : memref<8x10xf32> }
  affine.for %i = 0 to 6 { affine.store %zero, %p[%i + 1, 9] : memref<8x10xf32> }
  // Three rows, from the last one to the first.
  affine.for %j = 0 to 10 {
    %x = affine.load %a[0, %j] : memref<8x10xf32>
    %y = arith.negf %x : f32
    affine.store %y, %b[4, %j] : memref<8x10xf32>
  }
  affine.for %j = 0 to 10 {
    %x = affine.load %a[2, %j] : memref<8x10xf32>
    %y = arith.negf %x : f32
    affine.store %y, %b[3, %j] : memref<8x10xf32>
  }
  affine.for %j = 0 to 10 {
    %x = affine.load %a[4, %j] : memref<8x10xf32>
    %y = arith.negf %x : f32
    affine.store %y, %b[2, %j] : memref<8x10xf32>
  }
  // Sums.
  affine.for %i = 0 to 1 {
    %s = affine.for %j = 0 to 10 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[3, %j] : memref<8x10xf32>
      %u = arith.addf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %s, %c[0] : memref<8xf32>
  }
  affine.for %i = 0 to 1 {
    %s = affine.for %j = 0 to 10 iter_args(%t = %zero) -> (f32) {
      %x = affine.load %a[4, %j] : memref<8x10xf32>
      %u = arith.addf %t, %x : f32
      affine.yield %u : f32
    }
    affine.store %s, %c[1] : memref<8xf32>
  }
  // The second one reads what the first one writes.
  affine.for %j = 0 to 10 {
    %x = affine.load %b[4, %j] : memref<8x10xf32>
    %y = math.exp %x : f32
    affine.store %y, %b[4, %j] : memref<8x10xf32>
  }
  affine.for %j = 0 to 10 {
    %x = affine.load %b[3, %j] : memref<8x10xf32>
    %y = math.exp %x : f32
    affine.store %y, %b[3, %j] : memref<8x10xf32>
  }
  // One place, twice.
  affine.for %j = 0 to 10 {
    %x = affine.load %a[1, %j] : memref<8x10xf32>
    affine.store %x, %c[7] : memref<8xf32>
  }
  affine.for %j = 0 to 10 {
    %x = affine.load %a[2, %j] : memref<8x10xf32>
    affine.store %x, %c[7] : memref<8xf32>
  }
  // What is between reads what the second one writes.
  affine.for %j = 0 to 1 { affine.store %one, %c[5] : memref<8xf32> }
  affine.for %j = 0 to 1 {
    %x = affine.load %c[6] : memref<8xf32>
    affine.store %x, %e[0, 0] : memref<8x10xf32>
  }
  affine.for %j = 0 to 1 { affine.store %one, %c[6] : memref<8xf32> }
  // Other operations.
  affine.for %j = 0 to 10 {
    %x = affine.load %a[1, %j] : memref<8x10xf32>
    %y = math.absf %x : f32
    affine.store %y, %e[3, %j] : memref<8x10xf32>
  }
  affine.for %j = 0 to 10 {
    %x = affine.load %a[2, %j] : memref<8x10xf32>
    %y = arith.negf %x : f32
    affine.store %y, %e[4, %j] : memref<8x10xf32>
  }
  // Other bounds.
  affine.for %i = 0 to 4 {
    affine.for %j = affine_map<(d0) -> (d0)>(%i) to 10 {
      affine.store %zero, %e[%i, %j] : memref<8x10xf32>
    }
  }
  affine.for %i = 0 to 4 {
    affine.for %j = 0 to 10 { affine.store %zero, %e[%i + 4, %j] : memref<8x10xf32> }
  }
  // Large.
  affine.for %j = 0 to 100000000 { affine.store %zero, %d[0, %j] : memref<2x100000000xf32> }
  affine.for %j = 0 to 100000000 { affine.store %zero, %d[1, %j] : memref<2x100000000xf32> }
  return
}
