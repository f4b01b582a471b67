// PASSES: outline-teams
//
// What a region uses from around it is handed over in memory, in the order of its uses; a function
// without a region stays.

// CHECK:       llvm.func @GOMP_parallel(!llvm.ptr, !llvm.ptr, i32, i32)
// CHECK-LABEL: llvm.func @k_team
// CHECK-SAME:  (%[[BEGIN:.*]]: i64, %[[X:.*]]: !llvm.ptr, %[[N:.*]]: i32)
// CHECK:         %[[DATA:.*]] = llvm.alloca %{{.*}} x !llvm.struct<(ptr, i64)> : (i32) -> !llvm.ptr
// CHECK:         llvm.cond_br
// CHECK-NOT:     omp.parallel
// CHECK:         %[[P0:.*]] = llvm.getelementptr %[[DATA]][0, 0]
// CHECK:         llvm.store %[[X]], %[[P0]]
// CHECK:         %[[P1:.*]] = llvm.getelementptr %[[DATA]][0, 1]
// CHECK:         llvm.store %[[BEGIN]], %[[P1]]
// CHECK:         %[[REGION:.*]] = llvm.mlir.addressof @k_team_region_
// CHECK:         %[[FLAGS:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         llvm.call @GOMP_parallel(%[[REGION]], %[[DATA]], %[[N]], %[[FLAGS]])
// CHECK-LABEL: llvm.func @k_team_region()
// CHECK:       llvm.func internal @k_team_region_(%[[GIVEN:.*]]: !llvm.ptr)
// CHECK:         %[[A0:.*]] = llvm.getelementptr %[[GIVEN]][0, 0]
// CHECK:         %[[V0:.*]] = llvm.load %[[A0]] : !llvm.ptr -> !llvm.ptr
// CHECK:         %[[A1:.*]] = llvm.getelementptr %[[GIVEN]][0, 1]
// CHECK:         %[[V1:.*]] = llvm.load %[[A1]] : !llvm.ptr -> i64
// CHECK:         %[[THREAD:.*]] = llvm.call @omp_get_thread_num()
// CHECK:         llvm.store %[[THREAD]], %[[V0]]
// CHECK:         llvm.call @k(%[[V1]], %[[V0]])
// CHECK:         llvm.return
llvm.func @omp_get_thread_num() -> i32
llvm.func @k(i64, !llvm.ptr)
llvm.func @k_team(%begin: i64, %x: !llvm.ptr, %n: i32) {
  %one = llvm.mlir.constant(1 : i32) : i32
  %alone = llvm.icmp "sle" %n, %one : i32
  llvm.cond_br %alone, ^bb1, ^bb2
^bb1:
  llvm.call @k(%begin, %x) : (i64, !llvm.ptr) -> ()
  llvm.br ^bb3
^bb2:
  omp.parallel num_threads(%n : i32) {
    %thread = llvm.call @omp_get_thread_num() : () -> i32
    llvm.store %thread, %x : i32, !llvm.ptr
    llvm.call @k(%begin, %x) : (i64, !llvm.ptr) -> ()
    omp.terminator
  }
  llvm.br ^bb3
^bb3:
  llvm.return
}
// The name is taken.
llvm.func @k_team_region()
