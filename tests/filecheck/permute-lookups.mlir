// PASSES: permute-lookups
// ARCH: znver4
//
// Two neighbours at three places each: a table of bytes for each of the four bytes of both, in front
// of the loop, and one round of permutations for all places.

// CHECK-LABEL: func.func @three
// CHECK-SAME:    %[[TABLE:arg[0-9]+]]: memref<257xf32>
// CHECK:         %[[BYTES:.*]] = memref.alloca() {alignment = 64 : i64} : memref<8x256xi8>
// CHECK:         scf.for
// CHECK:           %[[NUMBERS:.*]] = vector.load %[[TABLE]]{{.*}} vector<16xf32>
// CHECK:           arith.bitcast %[[NUMBERS]] : vector<16xf32> to vector<16xi32>
// CHECK-COUNT-4:   vector.store {{.*}}%[[BYTES]]{{.*}} vector<16xi8>
// CHECK:         scf.for
// CHECK-COUNT-4:   vector.store {{.*}}%[[BYTES]]{{.*}} vector<16xi8>
// CHECK:         scf.for
// CHECK:           %[[I:.*]] = vector.load %{{.*}} vector<16xi32>
// CHECK:           %[[J:.*]] = arith.muli %[[I]]
// CHECK:           %[[K:.*]] = arith.shrui %[[J]]
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.packusdw.512"(%[[I]], %[[J]])
// CHECK:           llvm.call_intrinsic "llvm.x86.avx512.packusdw.512"(%[[K]], %[[K]])
// CHECK:           %[[AT:.*]] = llvm.call_intrinsic "llvm.x86.avx512.packuswb.512"
// CHECK-COUNT-16:  "llvm.x86.avx512.vpermi2var.qi.512"(%{{.*}}, %[[AT]], %{{.*}})
// CHECK-NOT:       vpermi2var
// CHECK-NOT:       vector.gather
// CHECK:         return
func.func @three(%table: memref<257xf32> {llvm.noalias}, %places: memref<1024xi32> {llvm.noalias}, %out: memref<3072xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %all = arith.constant dense<true> : vector<16xi1>
  %one = arith.constant dense<1> : vector<16xi32>
  scf.for %n = %c0 to %c1024 step %c16 {
    %i = vector.load %places[%n] : memref<1024xi32>, vector<16xi32>
    %a = vector.gather %table[%c0] [%i], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %i1 = arith.addi %i, %one : vector<16xi32>
    %b = vector.gather %table[%c0] [%i1], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %ab = arith.addf %a, %b : vector<16xf32>
    vector.store %ab, %out[%n] : memref<3072xf32>, vector<16xf32>
    %j = arith.muli %i, %i : vector<16xi32>
    %c = vector.gather %table[%c0] [%j], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %j1 = arith.addi %one, %j : vector<16xi32>
    %d = vector.gather %table[%c0] [%j1], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %cd = arith.addf %c, %d : vector<16xf32>
    %p = arith.addi %n, %c1024 : index
    vector.store %cd, %out[%p] : memref<3072xf32>, vector<16xf32>
    %k = arith.shrui %j, %one : vector<16xi32>
    %e = vector.gather %table[%c0] [%k], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %k1 = arith.addi %k, %one : vector<16xi32>
    %f = vector.gather %table[%c0] [%k1], %all, %zero : memref<257xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
    %ef = arith.addf %e, %f : vector<16xf32>
    %q = arith.addi %p, %c1024 : index
    vector.store %ef, %out[%q] : memref<3072xf32>, vector<16xf32>
  }
  return
}

// Of a table of one register no bit of the index chooses a half; what is left of it is masked. Lanes
// of two registers are two places.
//
// CHECK-LABEL: func.func @short
// CHECK:         memref.alloca() {alignment = 64 : i64} : memref<4x64xi8>
// CHECK:         vector.maskedload %arg0{{.*}} vector<16xi32>
// CHECK:         scf.for
// CHECK-COUNT-4:   "llvm.x86.avx512.permvar.qi.512"
// CHECK-NOT:       vpermi2var
// CHECK-NOT:       arith.select
// CHECK:           vector.shuffle {{.*}} : vector<16xi32>, vector<16xi32>
// CHECK-NOT:       vector.gather
// CHECK:         return
func.func @short(%table: memref<50xi32> {llvm.noalias}, %places: memref<1024xindex> {llvm.noalias}, %out: memref<1024xi32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c32 = arith.constant 32 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant dense<0> : vector<32xi32>
  %all = arith.constant dense<true> : vector<32xi1>
  scf.for %n = %c0 to %c1024 step %c32 {
    %i = vector.load %places[%n] : memref<1024xindex>, vector<32xindex>
    %a = vector.gather %table[%c0] [%i], %all, %zero : memref<50xi32>, vector<32xindex>, vector<32xi1>, vector<32xi32> into vector<32xi32>
    vector.store %a, %out[%n] : memref<1024xi32>, vector<32xi32>
  }
  return
}

// Others stay gathers: one place in a long table, a table that something else may point to, one that
// is written, one with more entries than a byte tells apart, places that depend on what is looked up,
// loops of few iterations.
//
// CHECK-LABEL: func.func @kept
// CHECK-NOT:     memref.alloca
// CHECK-COUNT-11: vector.gather
// CHECK:         return
func.func @kept(%table: memref<256xi32> {llvm.noalias}, %shared: memref<256xi32>, %written: memref<256xi32> {llvm.noalias}, %long: memref<257xi32> {llvm.noalias}, %chain: memref<200xi32> {llvm.noalias}, %few: memref<256xi32> {llvm.noalias}, %places: memref<1024xi32> {llvm.noalias}, %out: memref<1024xi32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c16 = arith.constant 16 : index
  %c64 = arith.constant 64 : index
  %c1024 = arith.constant 1024 : index
  %zero = arith.constant dense<0> : vector<16xi32>
  %one = arith.constant dense<1> : vector<16xi32>
  %all = arith.constant dense<true> : vector<16xi1>
  scf.for %n = %c0 to %c1024 step %c16 {
    %i = vector.load %places[%n] : memref<1024xi32>, vector<16xi32>
    %j = arith.shrui %i, %one : vector<16xi32>
    %a = vector.gather %table[%c0] [%i], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %b = vector.gather %shared[%c0] [%i], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %c = vector.gather %shared[%c0] [%j], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %d = vector.gather %written[%c0] [%i], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %e = vector.gather %written[%c0] [%j], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %f = vector.gather %long[%c0] [%i], %all, %zero : memref<257xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %m = vector.gather %long[%c0] [%j], %all, %zero : memref<257xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %g = vector.gather %chain[%c0] [%i], %all, %zero : memref<200xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %h = vector.gather %chain[%c0] [%g], %all, %zero : memref<200xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    vector.store %a, %written[%c0] : memref<256xi32>, vector<16xi32>
    vector.store %b, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %c, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %d, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %e, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %f, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %m, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %h, %out[%n] : memref<1024xi32>, vector<16xi32>
  }
  scf.for %n = %c0 to %c64 step %c16 {
    %i = vector.load %places[%n] : memref<1024xi32>, vector<16xi32>
    %j = arith.shrui %i, %one : vector<16xi32>
    %a = vector.gather %few[%c0] [%i], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    %b = vector.gather %few[%c0] [%j], %all, %zero : memref<256xi32>, vector<16xi32>, vector<16xi1>, vector<16xi32> into vector<16xi32>
    vector.store %a, %out[%n] : memref<1024xi32>, vector<16xi32>
    vector.store %b, %out[%n] : memref<1024xi32>, vector<16xi32>
  }
  return
}

// A row of a table is looked up in memory.

// CHECK-LABEL: func.func @rows
// CHECK-NOT:     alloca
// CHECK:         vector.gather
func.func @rows(%table: memref<9x64xf32> {llvm.noalias}, %places: memref<9x640xi32> {llvm.noalias},
                %out: memref<9x640xf32> {llvm.noalias}) {
  %c0 = arith.constant 0 : index
  %c9 = arith.constant 9 : index
  %c1 = arith.constant 1 : index
  %c16 = arith.constant 16 : index
  %c640 = arith.constant 640 : index
  %all = arith.constant dense<true> : vector<16xi1>
  %zero = arith.constant dense<0.0> : vector<16xf32>
  scf.for %i = %c0 to %c9 step %c1 {
    scf.for %j = %c0 to %c640 step %c16 {
      %k = vector.load %places[%i, %j] : memref<9x640xi32>, vector<16xi32>
      %v = vector.gather %table[%i, %c0] [%k], %all, %zero : memref<9x64xf32>, vector<16xi32>, vector<16xi1>, vector<16xf32> into vector<16xf32>
      vector.store %v, %out[%i, %j] : memref<9x640xf32>, vector<16xf32>
    }
  }
  return
}
