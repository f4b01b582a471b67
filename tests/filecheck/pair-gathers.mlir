// PASSES: pair-gathers

// Neighbours are gathered at once, also where the upper one is read first.
// CHECK-LABEL: func.func @main
// CHECK-SAME:    %[[T:[a-z0-9]+]]: memref<64xf32>
// CHECK:         memref.extract_aligned_pointer_as_index %[[T]]
// CHECK:         %[[AT:.*]] = llvm.getelementptr %{{.*}}[%[[I:[a-z0-9]+]]] : (!llvm.ptr, vector<16xi32>) -> vector<16x!llvm.ptr>, f32
// CHECK:         %[[PAIRS:.*]] = llvm.intr.masked.gather %[[AT]], %[[M:.*]], %{{.*}} {alignment = 4 : i32}
// CHECK-SAME:      vector<16xi64>
// CHECK:         %[[BOTH:.*]] = vector.bitcast %[[PAIRS]] : vector<16xi64> to vector<32xf32>
// CHECK:         %[[LOW:.*]] = vector.shuffle %[[BOTH]], %[[BOTH]] [0, 2, 4,
// CHECK:         %[[HIGH:.*]] = vector.shuffle %[[BOTH]], %[[BOTH]] [1, 3, 5,
// CHECK-NOT:     vector.gather
// CHECK:         arith.subf %[[HIGH]], %[[LOW]]
// CHECK:         llvm.intr.masked.gather
// CHECK:         %[[LOW:.*]] = vector.shuffle
// CHECK:         %[[HIGH:.*]] = vector.shuffle
// CHECK-NOT:     vector.gather
// CHECK:         arith.subf %[[HIGH]], %[[LOW]]
//
// Not those with a write between them, in other lanes, two apart, or of longer elements.
//
// CHECK-NOT:     llvm.intr.masked.gather
// CHECK-COUNT-7: vector.gather
func.func @main(%t: memref<64xf32>, %w: memref<64xf64>, %i: vector<16xi32>, %k: vector<16xi32>,
                %m: vector<16xi1>, %o: memref<16xf32>, %p: memref<16xf64>) {
  %c0 = arith.constant 0 : index
  %one = arith.constant dense<1> : vector<16xi32>
  %two = arith.constant dense<2> : vector<16xi32>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %long = arith.constant dense<0.0> : vector<16xf64>
  %all = arith.constant dense<true> : vector<16xi1>
  %next = arith.addi %i, %one : vector<16xi32>
  %a = vector.gather %t[%c0] [%i], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %b = vector.gather %t[%c0] [%next], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %c = arith.subf %b, %a : vector<16xf32>
  vector.store %c, %o[%c0] : memref<16xf32>, vector<16xf32>
  %sum = arith.addi %i, %k : vector<16xi32>
  %far = arith.addi %next, %k : vector<16xi32>
  %d = vector.gather %t[%c0] [%far], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %e = vector.gather %t[%c0] [%sum], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %f = arith.subf %d, %e : vector<16xf32>
  vector.store %f, %o[%c0] : memref<16xf32>, vector<16xf32>
  %g = vector.gather %t[%c0] [%i], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  vector.store %g, %o[%c0] : memref<16xf32>, vector<16xf32>
  %h = vector.gather %t[%c0] [%next], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %l = vector.gather %t[%c0] [%i], %all, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %n = arith.addf %h, %l : vector<16xf32>
  vector.store %n, %o[%c0] : memref<16xf32>, vector<16xf32>
  %over = arith.addi %i, %two : vector<16xi32>
  %q = vector.gather %t[%c0] [%over], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %r = vector.gather %t[%c0] [%i], %m, %zero : memref<64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
  %s = arith.addf %q, %r : vector<16xf32>
  vector.store %s, %o[%c0] : memref<16xf32>, vector<16xf32>
  %u = vector.gather %w[%c0] [%i], %m, %long : memref<64xf64>, vector<16xi32>, vector<16xi1>, vector<16xf64> into vector<16xf64>
  %v = vector.gather %w[%c0] [%next], %m, %long : memref<64xf64>, vector<16xi32>, vector<16xi1>, vector<16xf64> into vector<16xf64>
  %x = arith.addf %u, %v : vector<16xf64>
  vector.store %x, %p[%c0] : memref<16xf64>, vector<16xf64>
  return
}
