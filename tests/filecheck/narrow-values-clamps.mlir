// PASSES: narrow-values
//
// What is clamped once, and asked for NaN before it becomes an integer, need not be clamped again.

// CHECK-LABEL: func.func @main
// CHECK:         %[[K:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
// CHECK-NOT:     arith.maxsi
// CHECK-NOT:     arith.minsi
// CHECK:         %[[P:.*]] = arith.index_cast %[[K]] : i32 to index
// CHECK-NEXT:    memref.load %{{.*}}[%[[P]]]
func.func @main(%a: memref<8xf32>, %table: memref<8xf32>, %b: memref<8xf32>) {
  affine.for %i = 0 to 8 {
    %zero = arith.constant 0.0 : f32
    %top = arith.constant 7.0 : f32
    %x = affine.load %a[%i] : memref<8xf32>
    %low = arith.maximumf %x, %zero : f32
    %clamped = arith.minimumf %low, %top : f32
    %n = arith.fptosi %clamped : f32 to i32
    %nan = arith.cmpf uno, %clamped, %clamped : f32
    %c0 = arith.constant 0 : i32
    %number = arith.select %nan, %c0, %n : i32
    %c7 = arith.constant 7 : i32
    %most = arith.minsi %number, %c7 : i32
    %least = arith.maxsi %most, %c0 : i32
    %k = arith.index_cast %least : i32 to index
    %v = memref.load %table[%k] : memref<8xf32>
    affine.store %v, %b[%i] : memref<8xf32>
  }
  return
}
